// SPDX-License-Identifier: Apache-2.0
// What the person at the page chooses. A field left empty is not sent: the server's own value holds.
import { h } from "./dom.js";

const number = (text) => Number(text);
const lines = (text) => text.split("\n").filter((line) => line !== "");

function json(text) {
  const value = JSON.parse(text);
  if (!Array.isArray(value)) throw new SyntaxError("it is not a list");
  return value;
}

// THE LIST of what goes into a request: field of the API, label, kind of input with its attributes, how to read it.
const kFields = [
  { name: "temperature", label: "Temperature", type: "number", min: 0, max: 2, step: "any", read: number },
  { name: "top_p", label: "Top p", type: "number", min: 0, max: 1, step: "any", read: number },
  { name: "top_k", label: "Top k", type: "number", min: 0, step: 1, read: number },
  { name: "min_p", label: "Min p", type: "number", min: 0, max: 1, step: "any", read: number },
  { name: "repetition_penalty", label: "Repetition penalty", type: "number", min: 0.01, max: 10, step: "any", read: number },
  { name: "presence_penalty", label: "Presence penalty", type: "number", min: -2, max: 2, step: "any", read: number },
  { name: "frequency_penalty", label: "Frequency penalty", type: "number", min: -2, max: 2, step: "any", read: number },
  { name: "max_completion_tokens", label: "Tokens at most", type: "number", min: 1, step: 1, read: number },
  { name: "seed", label: "Seed", type: "number", step: 1, read: number },
  { name: "reasoning_effort", label: "Reasoning", options: ["none", "minimal", "low", "medium", "high", "xhigh"], read: String },
  { name: "stop", label: "Stop at (one a line, at most 4)", rows: 2, wide: true, read: lines },
  { name: "tools", label: "Tools (JSON, as the API takes them)", rows: 3, wide: true, code: true, read: json },
];

function input(field) {
  const { name, label, options, rows, wide, code, read, ...attributes } = field;
  const id = `set-${name}`;
  let node;
  if (options) node = h("select", { id }, h("option", { value: "" }, "default"), ...options.map((o) => h("option", {}, o)));
  else if (rows) node = h("textarea", { id, rows, spellcheck: "false", class: code && "mono" });
  else node = h("input", { id, ...attributes, placeholder: "default", inputmode: "decimal" });
  return h("div", { class: wide ? "field wide" : "field" }, h("label", { for: id }, label), node);
}

export class Settings {
  #model = h("select", { id: "model" });
  #system = h("textarea", { id: "system", rows: 3 });
  #key = h("input", { id: "key", type: "password", autocomplete: "off", spellcheck: "false" });
  #keyNote = h("p", { id: "key-note", class: "quiet" }, "Only if the server asks for one. Kept until this tab is closed.");

  // on_key(key): called when a key was typed or taken away.
  constructor(node, key, on_key, on_close) {
    this.node = node;
    this.#key.value = key;
    this.#key.setAttribute("aria-describedby", "key-note");
    this.#key.addEventListener("change", () => on_key(this.#key.value.trim()));
    node.append(
      h("div", {}, h("h2", {}, "Settings"), h("button", { type: "button", class: "small", onclick: on_close }, "Close")),
      h("div", { class: "fields" },
        h("div", { class: "field wide" }, h("label", { for: "model" }, "Model"), this.#model),
        h("div", { class: "field wide" }, h("label", { for: "system" }, "System prompt"), this.#system),
        ...kFields.map(input),
        h("div", { class: "field wide" }, h("label", { for: "key" }, "API key"), this.#key, this.#keyNote)));
  }

  get model() {
    return this.#model.value;
  }

  get system() {
    return this.#system.value;
  }

  setModels(names) {
    const chosen = this.model;
    this.#model.replaceChildren(...names.map((name) => h("option", {}, name)));
    if (names.includes(chosen)) this.#model.value = chosen;
  }

  askForKey() {
    this.#key.focus();
  }

  // The chosen fields of a request; throws Error with a sentence that names the field which cannot be read.
  request() {
    const chosen = { model: this.model };
    for (const { name, label, read } of kFields) {
      const node = document.getElementById(`set-${name}`);
      if (node.validity.badInput) throw new Error(`${label}: this is not a number.`);
      if (node.value.trim() === "") continue;
      if (!node.validity.valid) throw new Error(`${label}: ${node.validationMessage}`);
      try {
        chosen[name] = read(node.value);
      } catch (e) {
        throw new Error(`${label}: this cannot be read: ${e.message}`);
      }
    }
    return chosen;
  }
}
