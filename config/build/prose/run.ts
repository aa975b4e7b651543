/**
 * Checks comments, names and Markdown of the tree:
 * `node config/build/prose/run.ts [--write] [--count] [PATH...]`. `--write` wraps what is too wide,
 * `--count` prints how many findings each rule has.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type Finding, markdownFindings, sourceFindings, subjectFindings, wrapMarkdown, wrapSource } from "./rules.ts";

const { values, positionals } = parseArgs({
  options: { write: { type: "boolean" }, count: { type: "boolean" } },
  allowPositionals: true,
});

/** Recorded material, and sources that are wrong on purpose. */
const skipped = /^(?:test\/fixtures|test\/contract\/rules\/broken|docs\/images)\//;
const sources = /\.(?:ts|mjs|cjs|js)$/;

const listed = execFileSync("git", ["ls-files", "-z", "--", ...positionals], { encoding: "utf8", maxBuffer: 2 ** 28 });
const paths = listed
  .split("\0")
  .filter((path) => path !== "" && !skipped.test(path) && (sources.test(path) || path.endsWith(".md")));

/** Commits before this time were made without the rule. */
const SUBJECTS_SINCE = "2026-11-29T12:00:00Z";

const counts = new Map<string, number>();
let found = 0;
function report(name: string, findings: readonly Finding[]): void {
  found += findings.length;
  for (const { line, rule, text } of findings) {
    counts.set(rule, (counts.get(rule) ?? 0) + 1);
    if (!values.count) console.log(`${name}:${line}: ${rule}\n    ${text.slice(0, 200)}`);
  }
}

for (const path of paths) {
  const source = readFileSync(path, "utf8");
  const isSource = sources.test(path);
  const written = values.write ? (isSource ? wrapSource(source) : wrapMarkdown(source)) : source;
  if (written !== source) writeFileSync(path, written);
  report(path, isSource ? sourceFindings(path, written) : markdownFindings(written));
}
if (positionals.length === 0) {
  const log = execFileSync("git", ["log", "--no-merges", "--format=%s", `--since=${SUBJECTS_SINCE}`], {
    encoding: "utf8",
  });
  report("git log", subjectFindings(log.split("\n")));
}
if (values.count)
  for (const [rule, count] of [...counts].sort((one, other) => other[1] - one[1])) console.log(count, rule);
if (found > 0)
  console.error(`${found} findings in ${paths.length} files; docs/contributing/style.md explains the rules`);
process.exitCode = found > 0 ? 1 : 0;
