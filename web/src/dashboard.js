// SPDX-License-Identifier: Apache-2.0
// How the server is doing: tiles for now, plots for the last quarter of an hour.
import uPlot from "uplot";

import { ask } from "./api.js";
import { $, h } from "./dom.js";
import { parse, Reading } from "./metrics.js";

const kPeriod = 2000, kKept = 450, kWindow = 30;  // milliseconds; readings; seconds

const kWhole = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7];  // steps of an axis that counts

const count = (v) => (v == null ? "–" : v < 10 && v % 1 ? v.toFixed(1) : Math.round(v).toLocaleString("en"));
const milliseconds = (v) => (v == null ? "–" : v === 0 ? "0" : v >= 1 ? `${v.toFixed(2)} s` : `${(v * 1000).toFixed(v < 0.01 ? 1 : 0)} ms`);
const percent = (v) => (v == null ? "–" : `${Math.round(100 * v)} %`);
function bytes(v) {
  if (v == null) return "–";
  const power = Math.min(4, v < 1000 ? 0 : Math.floor(Math.log10(v) / 3));
  return `${(v / 1000 ** power).toPrecision(3)} ${["B", "kB", "MB", "GB", "TB"][power]}`;
}

const clock = (seconds) => new Date(1000 * seconds).toTimeString().slice(0, 8);

const share = (part, whole) => (whole ? (part ?? 0) / whole : null);
const pages = (state) => (r) => r.sum("juno_kv_pages", { state });
const quantile = (name, q) => (r) => r.quantile(name, q);

// THE LISTS: what is shown, one line each.
const kTiles = [
  ["Tokens a second", (r) => count(r.rate("juno_new_tokens_total"))],
  ["Running", (r) => count(r.sum("juno_requests_running"))],
  ["Waiting", (r) => count(r.sum("juno_requests_waiting"))],
  ["First token, median", (r) => milliseconds(r.quantile("juno_first_token_seconds", 0.5))],
  ["Between tokens, median", (r) => milliseconds(r.quantile("juno_inter_token_seconds", 0.5))],
  ["Pages in use", (r) => percent(share(r.sum("juno_kv_pages", { state: "used" }), r.sum("juno_kv_pages", { state: "total" })))],
  ["Prompt tokens cached", (r) => percent(share(r.sum("juno_cached_tokens_total"), r.sum("juno_prompt_tokens_total")))],
  ["Answered", (r) => count(r.sum("juno_requests_total", { outcome: "finished" }))],
  ["Failed", (r) => count(r.sum("juno_requests_total", { outcome: "failed" }))],
  ["Memory of the program", (r) => bytes(r.sum("process_resident_memory_bytes"))],
];
const kPlots = [
  ["Tokens a second", count, [["written", (r) => r.rate("juno_new_tokens_total")], ["read", (r) => r.rate("juno_prompt_tokens_total")]]],
  ["Requests", count, [["running", (r) => r.sum("juno_requests_running")], ["waiting", (r) => r.sum("juno_requests_waiting")]]],
  ["Time to the first token", milliseconds, [["median", quantile("juno_first_token_seconds", 0.5)], ["99 %", quantile("juno_first_token_seconds", 0.99)]]],
  ["Time between tokens", milliseconds, [["median", quantile("juno_inter_token_seconds", 0.5)], ["99 %", quantile("juno_inter_token_seconds", 0.99)]]],
  ["Time in the queue", milliseconds, [["median", quantile("juno_queue_seconds", 0.5)], ["99 %", quantile("juno_queue_seconds", 0.99)]]],
  ["Pages of keys and values", count, [["in use", pages("used")], ["cached", pages("cached")], ["there are", pages("total")]]],
];

// What the models take on each device, as /health tells.
function deviceBytes(health) {
  const devices = new Map();
  for (const { name, backend, bytes } of (health.models ?? []).flatMap((model) => model.devices ?? []))
    devices.set(name || backend, (devices.get(name || backend) ?? 0) + bytes);
  return devices;
}

function memoryPlot(reading) {
  const program = ["program", (r) => r.sum("process_resident_memory_bytes")];
  return ["Memory", bytes, [program, ...[...reading.devices.keys()].map((name) => [name, (r) => r.devices.get(name) ?? null])]];
}

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

class Plot {
  constructor([title, format, series]) {
    this.series = series;
    this.format = format;
    this.title = title;
    this.canvas = h("div", { role: "img" });
    this.node = h("figure", {}, h("figcaption", {}, title), this.canvas);
  }

  // The colours have changed, which a canvas does not follow.
  forget() {
    this.plot?.destroy();
    this.plot = null;
  }

  build(data) {
    const grid = { stroke: style("--line"), width: 1 };
    const axis = { stroke: style("--quiet"), grid, ticks: grid, font: "12px system-ui, sans-serif" };
    const value = (_, v) => this.format(v);
    this.plot = new uPlot({
      width: this.width(), height: 180,
      cursor: { y: false },
      scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [{ ...axis, space: 80, values: (_, splits) => splits.map(clock) },
        { ...axis, size: 70, incrs: this.format === count ? kWhole : undefined, values: (_, splits) => splits.map((v) => this.format(v)) }],
      series: [{ label: "at", value: (_, seconds) => (seconds == null ? "–" : clock(seconds)) },
        ...this.series.map(([label], i) => ({ label, value, stroke: style(`--plot-${i % 4}`), width: 2, spanGaps: false, points: { show: false } }))],
    }, data, this.canvas);
  }

  width() {
    return Math.max(200, this.node.clientWidth);
  }

  // history: {seconds, values}; mine: which of the values are this plot's.
  draw(history, mine) {
    const data = [history.map((r) => r.seconds), ...this.series.map((_, i) => history.map((r) => r.values[mine][i]))];
    if (this.plot) this.plot.setData(data);
    else this.build(data);
    if (this.plot.cursor.idx == null) this.plot.setLegend({ idx: history.length - 1 }, false);  // now, where nobody points
    const now = this.series.map(([label], i) => `${label} ${this.format(data[i + 1].at(-1))}`);
    this.canvas.setAttribute("aria-label", `${this.title}: ${now.join(", ")}`);
  }
}

export class Dashboard {
  #recent = [];   // readings of the last half minute
  #history = [];  // {seconds, values of each plot's series}
  #plots = [];
  #devices = null;
  #tiles = kTiles.map(([label, value]) => ({ value, node: h("dd", {}, "–"), label }));
  #health = h("dd", {}, "–");

  constructor() {
    $("tiles").append(h("div", {}, h("dt", {}, "Health"), this.#health),
      ...this.#tiles.map(({ label, node }) => h("div", {}, h("dt", {}, label), node)));
    new ResizeObserver(() => this.#plots.forEach((p) => p.plot?.setSize({ width: p.width(), height: 180 }))).observe($("plots"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const plot of this.#plots) plot.forget();
      this.#draw();
    });
    this.#watch();
  }

  // Called when the view is shown: what is hidden has no width to draw in.
  show() {
    this.#draw();
    this.#plots.forEach((p) => p.plot?.setSize({ width: p.width(), height: 180 }));
  }

  async #watch() {
    if (document.visibilityState === "visible") await this.#read();
    setTimeout(() => this.#watch(), kPeriod);
  }

  async #read() {
    let health;
    try {
      health = await ask("health", { allow: [503] });
      const said = await health.json();
      this.#tell(health.ok ? "ok" : "bad", said.status ?? said.error.message);
      const text = await (await ask("metrics")).text();
      this.#take(new Reading(Date.now() / 1000, parse(text), deviceBytes(said)));
      $("trouble").hidden = true;
    } catch (e) {
      if (!health) this.#tell("bad", "not reached");
      $("trouble").textContent = e.status === 401 ? "The figures need the API key: type it in the chat's settings." : e.message;
      $("trouble").hidden = false;
    }
    this.#draw();
  }

  #tell(state, text) {
    this.#health.textContent = text;
    if ($("state").textContent === text) return;
    $("state").className = state;
    $("state").textContent = text;
  }

  // The plots, empty: at first, and when a model came to other devices.
  #begin(reading) {
    for (const plot of this.#plots) plot.forget();
    this.#history = [];
    this.#plots = [...kPlots, memoryPlot(reading)].map((p) => new Plot(p));
    $("plots").replaceChildren(...this.#plots.map((p) => p.node));
  }

  #take(reading) {
    // The oldest of the last half minute, or at least the one before, where nobody looked for longer.
    while (this.#recent.length > 1 && reading.seconds - this.#recent[1].seconds > kWindow) this.#recent.shift();
    reading.early = this.#recent[0] ?? null;
    reading.before = this.#recent.at(-1) ?? null;
    const devices = [...reading.devices.keys()].join("\n");
    if (devices !== this.#devices) this.#begin(reading);
    this.#devices = devices;
    this.#history.push({ seconds: reading.seconds, values: this.#plots.map((plot) => plot.series.map(([, value]) => value(reading))) });
    if (this.#history.length > kKept) this.#history.shift();
    this.#tiles.forEach(({ value, node }) => (node.textContent = value(reading)));
    reading.early = reading.before = null;  // no chain of all that ever was
    this.#recent.push(reading);
  }

  #draw() {
    if (this.#history.length && !$("dashboard").hidden) this.#plots.forEach((plot, i) => plot.draw(this.#history, i));
  }
}
