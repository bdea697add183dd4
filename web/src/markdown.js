// SPDX-License-Identifier: Apache-2.0
// A reply as marked-up text. What a model writes is a stranger's: it gives structure, never markup of its own,
// no image, nothing that is fetched.
import DOMPurify from "dompurify";
import { Marked } from "marked";

import { copyButton, h } from "./dom.js";

const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

const marked = new Marked({
  gfm: true,
  renderer: {
    html: ({ text }) => escaped(text),
    // A picture would be a request to whoever the model names: its address becomes a link.
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

const kClean = {
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "a", "code", "pre", "blockquote", "ul", "ol", "li",
    "table", "thead", "tbody", "tr", "th", "td"],
  ALLOWED_ATTR: ["href", "title", "class", "align", "start"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  RETURN_DOM_FRAGMENT: true,
};

function rendered(tokens) {
  const fragment = DOMPurify.sanitize(marked.parser(tokens), kClean);
  for (const a of fragment.querySelectorAll("a")) {
    if (!a.hasAttribute("href")) continue;
    a.target = "_blank";
    a.rel = "noopener noreferrer nofollow";
    a.title ||= a.href;
  }
  for (const pre of fragment.querySelectorAll("pre")) {
    const code = pre.textContent;
    const language = /language-(\S+)/.exec(pre.firstElementChild?.className ?? "")?.[1] ?? "";
    const frame = h("div", { class: "code" }, h("p", {}, h("span", {}, language), copyButton(() => code)));
    pre.replaceWith(frame);
    pre.tabIndex = 0;  // it scrolls, so a keyboard must reach it
    frame.append(pre);
  }
  for (const table of fragment.querySelectorAll("table")) {
    const frame = h("div", { class: "table", tabindex: 0 });
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
}

// Text that grows: only the blocks that have changed are drawn again, so that what was selected stays so.
export class MarkdownView {
  #blocks = [];  // {raw, node}

  constructor() {
    this.node = h("div", { class: "text" });
  }

  update(text) {
    const tokens = marked.lexer(text);
    let same = 0;
    while (same < this.#blocks.length && this.#blocks[same].raw === tokens[same]?.raw) same++;
    for (const { node } of this.#blocks.splice(same)) node.remove();
    for (const token of tokens.slice(same)) {
      const node = h("div", {}, rendered([token]));
      this.node.append(node);
      this.#blocks.push({ raw: token.raw, node });
    }
  }

  // All anew: the address of a [link][reference] may have come after it.
  finish(text) {
    this.#blocks = [];
    this.node.replaceChildren();
    this.update(text);
  }
}
