// SPDX-License-Identifier: Apache-2.0
// Makes dist/ from src/: npm ci && npm run build. dist/ is committed, so that the program's build needs no node.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

import { build } from "esbuild";

process.chdir(import.meta.dirname);
rmSync("dist", { recursive: true, force: true });
mkdirSync("dist");

const { metafile } = await build({
  entryPoints: { app: "src/main.js", style: "src/style.css" },
  outdir: "dist",
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022", "chrome109", "firefox115", "safari16.4"],
  legalComments: "none",  // licences.txt has them whole
  metafile: true,
  logLevel: "info",
});
for (const name of ["index.html", "icon.svg"]) copyFileSync(`src/${name}`, `dist/${name}`);

// The licence of each package of which something went into the bundle.
const packages = Object.keys(metafile.inputs).map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean);
const licences = [...new Set(packages)].sort().map((name) => {
  const { version, license } = JSON.parse(readFileSync(`node_modules/${name}/package.json`));
  const file = readdirSync(`node_modules/${name}`).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name} ${version}: ${license}\n\n${readFileSync(`node_modules/${name}/${file}`, "utf8").trim()}\n`;
});
writeFileSync("dist/licences.txt", licences.join(`\n${"-".repeat(80)}\n\n`));

// What src/server/page.cmake compares before it embeds dist/: the same files in the same order.
const sources = ["build.js", "package-lock.json", "package.json", ...readdirSync("src").sort().map((name) => `src/${name}`)];
const sums = sources.map((name) => `${createHash("sha256").update(readFileSync(name)).digest("hex")} ${name}\n`);
writeFileSync("dist/sources.txt", createHash("sha256").update(sums.join("")).digest("hex") + "\n");
