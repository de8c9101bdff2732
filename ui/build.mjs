// Builds the scripts of the page into src/homeport/dashboard/static, beside its HTML and CSS; `--check` compares instead
// of writing.
import { build } from "esbuild";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { gzipSync } from "node:zlib";

const target = "../src/homeport/dashboard/static/";
const MOST = 60 * 1024; // bytes of script, compressed, that the first page loads

const made = await build({
  entryPoints: { app: "src/app.tsx", worker: "src/worker.ts" },
  bundle: true, minify: true, format: "esm", target: "es2022", write: false, outdir: ".", legalComments: "none",
  jsx: "automatic", jsxImportSource: "preact",
});
const files = Object.fromEntries(made.outputFiles.map((f) => [f.path.split("/").pop(), f.text]));

const size = gzipSync(files["app.js"], { level: 9 }).length;
if (size > MOST) { console.error(`app.js has ${size} bytes compressed; the limit is ${MOST}`); process.exit(1); }

if (process.argv.includes("--check")) {
  for (const [name, text] of Object.entries(files)) {
    let held = "";
    try { held = readFileSync(target + name, "utf8"); } catch { /* it is missing */ }
    if (held !== text) { console.error(`${name} is out of date: run 'make dashboard'`); process.exit(1); }
  }
} else {
  mkdirSync(target, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(target + name, text);
}
console.log(`app.js: ${(size / 1024).toFixed(1)} KiB compressed`);
