// SPDX-License-Identifier: Apache-2.0
// The conversation: what was said, what is being answered, and the keys for it. It lives in this page alone.
import { stream } from "./api.js";
import { $, h } from "./dom.js";
import { ReplyTurn, userTurn } from "./turn.js";

const kReasons = { stop: "", length: "cut off at the limit", tool_calls: "calls a tool" };

export class Chat {
  #settings;
  #messages = [];
  #abort = null;  // while an answer comes
  #empty = $("empty");

  constructor(settings) {
    this.#settings = settings;
    $("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    $("message").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#send();
    });
    $("message").addEventListener("input", grow);
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#abort?.abort();
    });
    $("stop").addEventListener("click", () => this.#abort?.abort());
    $("fresh").addEventListener("click", () => this.#forget());
  }

  #forget() {
    this.#abort?.abort();
    this.#messages = [];
    $("log").replaceChildren(this.#empty);
    say("New conversation");
    $("message").focus();
  }

  #send() {
    const text = $("message").value;
    if (this.#abort || text.trim() === "") return;
    $("message").value = "";
    grow();
    this.#messages.push({ role: "user", content: text });
    this.#show(userTurn(text));
    this.#answer();
  }

  #show(node) {
    this.#empty.remove();
    // Only the last reply can be tried again, or wait for results.
    for (const old of $("log").querySelectorAll(".again, .result, .failure")) old.remove();
    $("log").append(node);
    $("log").scrollTop = $("log").scrollHeight;
  }

  #busy(abort) {
    this.#abort = abort;
    $("send").hidden = Boolean(abort);
    $("stop").hidden = !abort;
  }

  // Asks for a reply to what was said so far.
  async #answer() {
    const messages = this.#messages;
    const abort = new AbortController();
    const turn = new ReplyTurn(this.#settings.model || "Model");
    turn.onDraw = follow;
    const run = { began: performance.now(), first: 0, tokens: 0, usage: null, reason: null, error: null };
    this.#busy(abort);
    say("Waiting for the answer");
    try {
      const system = this.#settings.system ? [{ role: "system", content: this.#settings.system }] : [];
      const request = { ...this.#settings.request(), messages: [...system, ...messages], stream_options: { include_usage: true } };
      this.#show(turn.node);
      for await (const chunk of stream("v1/chat/completions", request, abort.signal)) take(run, chunk, turn);
    } catch (e) {
      if (e.name === "AbortError") run.reason = "stopped";
      else run.error = e;
    }
    if (this.#abort === abort) this.#busy(null);
    if (this.#messages !== messages) return;  // a new conversation was begun meanwhile
    this.#end(run, turn);
  }

  #end(run, turn) {
    if (turn.empty && run.reason !== "stop" && run.reason !== "length") {
      turn.node.remove();
      this.#takeBack();
    } else {
      this.#messages.push(turn.message);
      const at = this.#messages.length - 1;
      turn.finish(figures(run), () => this.#again(at, turn));
      if (run.reason === "tool_calls") this.#ask(turn);
    }
    if (run.error) this.#fail(run.error);
    else say(run.reason === "stopped" ? "Stopped" : `Answer: ${turn.message.content ?? "a call of a tool"}`);
    follow();
  }

  #ask(turn) {
    const first = turn.askResults((results) => this.#results(turn.message, results));
    if ($("message").value === "") first.focus();
  }

  // Nothing was answered: the message goes back to where it was typed.
  #takeBack() {
    if (this.#messages.at(-1)?.role !== "user") return;
    const { content } = this.#messages.pop();
    $("log").querySelector(".turn:last-of-type")?.remove();
    if ($("message").value === "") $("message").value = content;
    grow();
  }

  #fail(error) {
    const hint = error.code === "context_length_exceeded" ? " A new conversation has room again." : "";
    $("log").append(h("p", { class: "notice failure", role: "alert" }, error.message + hint));
    $("log").scrollTop = $("log").scrollHeight;
    if (error.status === 401) this.onKey?.();
  }

  #again(at, turn) {
    if (this.#abort) return;
    $("log").querySelector(".failure")?.remove();
    this.#messages.length = at;
    turn.node.remove();
    this.#answer();
    $("message").focus();
  }

  #results(message, results) {
    if (this.#abort) return;
    message.tool_calls.forEach((call, i) => this.#messages.push({ role: "tool", tool_call_id: call.id, content: results[i] }));
    $("message").focus();
    this.#answer();
  }
}

function take(run, chunk, turn) {
  if (chunk.usage) run.usage = chunk.usage;
  const choice = chunk.choices[0];
  if (!choice) return;
  turn.add(choice.delta);
  run.reason = choice.finish_reason ?? run.reason;
  if (!run.first && !turn.empty) run.first = performance.now();
  run.last = performance.now();
}

function figures({ began, first, last, usage, reason, error }) {
  const said = [];
  if (usage) {
    said.push(`${usage.completion_tokens} tokens`);
    if (usage.completion_tokens > 1 && last > first)
      said.push(`${(((usage.completion_tokens - 1) * 1000) / (last - first)).toFixed(1)} a second`);
  }
  if (first) said.push(`first after ${((first - began) / 1000).toFixed(2)} s`);
  const cached = usage?.prompt_tokens_details?.cached_tokens;
  if (usage) said.push(`prompt ${usage.prompt_tokens}${cached ? `, ${cached} cached` : ""}`);
  const end = error ? "broke off" : (kReasons[reason] ?? reason);
  if (end) said.push(end);
  return said.join(" · ");
}

// What a screen reader says.
const say = (text) => ($("spoken").textContent = text);

function grow() {
  const field = $("message");
  field.rows = Math.min(10, Math.max(1, field.value.split("\n").length));
}

// Keeps the end in sight for who looks at the end.
function follow() {
  const log = $("log");
  if (log.scrollHeight - log.scrollTop - log.clientHeight < 160) log.scrollTop = log.scrollHeight;
}
