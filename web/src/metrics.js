// SPDX-License-Identifier: Apache-2.0
// The text of /metrics (Prometheus' format), and what can be told from several of them in a row.

// -> Map of name to [{labels: {name: value}, value}].
export function parse(text) {
  const families = new Map();
  for (const line of text.split("\n")) {
    const found = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      labels[name] = value.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
    if (!families.has(found[1])) families.set(found[1], []);
    families.get(found[1]).push({ labels, value: found[3] === "+Inf" ? Infinity : Number(found[3]) });
  }
  return families;
}

const fits = (labels, wanted) => Object.entries(wanted).every(([name, value]) => labels[name] === value);

// The sum over all that carry these labels; null: there is none.
export function sum(families, name, wanted = {}) {
  const rows = (families.get(name) ?? []).filter(({ labels }) => fits(labels, wanted));
  return rows.length ? rows.reduce((total, { value }) => total + value, 0) : null;
}

// Upper bound -> count, over all label sets.
function buckets(families, name) {
  const counts = new Map();
  for (const { labels, value } of families.get(`${name}_bucket`) ?? []) {
    const le = labels.le === "+Inf" ? Infinity : Number(labels.le);
    counts.set(le, (counts.get(le) ?? 0) + value);
  }
  return counts;
}

// Now, beside the reading before it and one from half a minute ago.
export class Reading {
  // families: of parse(); devices: Map of name to bytes.
  constructor(seconds, families, devices) {
    Object.assign(this, { seconds, families, devices });
    this.before = this.early = null;
  }

  sum(name, labels) {
    return sum(this.families, name, labels);
  }

  // By how much a counter grows in a second; null at first, and after the server has begun anew.
  rate(name, labels) {
    if (!this.before) return null;
    const grown = this.sum(name, labels) - this.before.sum(name, labels);
    return grown >= 0 ? grown / (this.seconds - this.before.seconds) : null;
  }

  // Of the observations since `early`; linear within a bucket, as Prometheus does. null: there were none.
  quantile(name, q) {
    if (!this.early) return null;
    const old = buckets(this.early.families, name);
    const rows = [...buckets(this.families, name)].map(([le, n]) => [le, n - (old.get(le) ?? 0)]).sort((a, b) => a[0] - b[0]);
    const all = rows.at(-1)?.[1] ?? 0;
    if (!(all > 0)) return null;
    let [low, below] = [0, 0];
    for (const [le, n] of rows) {
      if (n >= q * all) return le === Infinity ? low : low + ((le - low) * (q * all - below)) / (n - below);
      [low, below] = [le, n];
    }
    return low;
  }
}
