// SPDX-License-Identifier: Apache-2.0
// One message in the conversation, as it is seen.
import { copyButton, h } from "./dom.js";
import { MarkdownView } from "./markdown.js";

export function userTurn(text, name = "You") {
  return h("article", { class: "turn user", "aria-label": name }, h("h2", { class: "unseen" }, name), h("p", {}, text));
}

// A reply that grows. Of one animation frame's chunks only the last state is drawn.
export class ReplyTurn {
  message = { role: "assistant", content: "" };
  #text = new MarkdownView();
  #reasoning = null;  // {frame, body}
  #calls = [];        // {name, body}
  #wait = h("p", { class: "wait", "aria-hidden": "true" }, h("i"), h("i"), h("i"));
  #foot = h("p", { class: "foot quiet" });
  #due = false;

  constructor(name) {
    this.node = h("article", { class: "turn reply", "aria-label": name, "aria-busy": "true" },
      h("h2", { class: "name" }, name), this.#wait, this.#text.node, this.#foot);
  }

  get empty() {
    return !this.message.content && !this.message.reasoning_content && !this.message.tool_calls;
  }

  add(delta) {
    if (delta.reasoning_content) this.message.reasoning_content = (this.message.reasoning_content ?? "") + delta.reasoning_content;
    if (delta.content) this.message.content += delta.content;
    for (const call of delta.tool_calls ?? []) this.#addCall(call);
    if (this.empty || this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => this.#draw());
  }

  #addCall({ index, id, function: made = {} }) {
    this.message.tool_calls ??= [];
    const call = (this.message.tool_calls[index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
    if (id) call.id = id;
    call.function.name += made.name ?? "";
    call.function.arguments += made.arguments ?? "";
  }

  #draw() {
    if (!this.#due) return;
    this.#due = false;
    this.#wait.remove();
    this.#drawReasoning();
    this.#text.update(this.message.content);
    (this.message.tool_calls ?? []).forEach((call, i) => this.#drawCall(call, i));
    this.onDraw?.();
  }

  #drawReasoning() {
    if (!this.message.reasoning_content) return;
    if (!this.#reasoning) {
      const body = h("p");
      this.#reasoning = { frame: h("details", { class: "reasoning" }, h("summary", {}, "Reasoning"), body), body };
      this.#text.node.before(this.#reasoning.frame);
    }
    this.#reasoning.body.textContent = this.message.reasoning_content;
    this.#reasoning.frame.classList.toggle("going", !this.message.content);
  }

  #drawCall(call, i) {
    if (!this.#calls[i]) {
      const made = { name: h("code"), body: h("pre", { tabindex: 0 }) };
      made.node = h("details", { class: "call", open: true }, h("summary", {}, "Calls ", made.name), made.body);
      this.#calls[i] = made;
      this.#foot.before(made.node);
    }
    this.#calls[i].name.textContent = call.function.name;
    this.#calls[i].body.textContent = call.function.arguments;
  }

  // Where the results of the calls are typed: answer([text, …]) gets them all at once. Returns the first field.
  askResults(answer) {
    const fields = this.message.tool_calls.map((call, i) => {
      const field = h("textarea", { rows: 2, class: "mono result", "aria-label": `Result of ${call.function.name}`, placeholder: "Result" });
      this.#calls[i].node.append(field);
      return field;
    });
    const button = h("button", { type: "button", class: "main result" }, "Send results");
    button.addEventListener("click", () => {
      for (const field of fields) {
        field.readOnly = true;
        field.classList.remove("result");
      }
      button.remove();
      answer(fields.map((field) => field.value));
    });
    this.#foot.before(button);
    return fields[0];
  }

  // figures: what is said about it; again(): what "Try again" does.
  finish(figures, again) {
    this.#due = true;
    this.#draw();
    this.#text.finish(this.message.content);
    this.#reasoning?.frame.classList.remove("going");
    this.node.removeAttribute("aria-busy");
    if (this.message.tool_calls && !this.message.content) this.message.content = null;
    this.#foot.append(copyButton(() => this.message.content ?? ""),
      h("button", { type: "button", class: "small again", onclick: again }, "Try again"), h("span", {}, figures));
  }
}
