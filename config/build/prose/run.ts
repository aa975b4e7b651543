/**
 * Checks comments, names and Markdown of the tree:
 * `node config/build/prose/run.ts [--write] [--count] [--commits] [PATH...]`. `--write` wraps what
 * is too wide, `--count` prints how many findings each rule has, and `--commits` also checks the
 * subjects of commits. A run without paths also checks the names of types.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Exceptions } from "./exceptions.ts";
import { type Finding, markdownFindings, sourceFindings, subjectFindings, wrapMarkdown, wrapSource } from "./rules.ts";
import { scan } from "./scan.ts";
import { commitSubjects, listFiles } from "./tree.ts";
import { type TypeCounts, TypeNames } from "./type_names.ts";

const { values, positionals } = parseArgs({
  options: { write: { type: "boolean" }, count: { type: "boolean" }, commits: { type: "boolean" } },
  allowPositionals: true,
});

const root = fileURLToPath(new URL("../../../", import.meta.url));
const paths = listFiles(root, positionals);
const counts = new Map<string, number>();
const typeNames = new TypeNames();
const exceptions = new Exceptions();

function report(name: string, findings: readonly Finding[]): void {
  for (const { line, rule, text } of findings) {
    counts.set(rule, (counts.get(rule) ?? 0) + 1);
    if (!values.count) console.log(`${name}:${line}: ${rule}\n    ${text.slice(0, 200)}`);
  }
}

for (const path of paths) {
  const file = join(root, path);
  const source = readFileSync(file, "utf8");
  const isMarkdown = path.endsWith(".md");
  const written = values.write ? (isMarkdown ? wrapMarkdown(source) : wrapSource(source)) : source;
  if (written !== source) writeFileSync(file, written);
  const scanned = isMarkdown ? undefined : scan(written);
  if (scanned !== undefined) typeNames.add(path, scanned.exportedTypes);
  const findings = scanned === undefined ? markdownFindings(written) : sourceFindings(path, written, scanned);
  report(path, exceptions.filter(path, findings));
}

if (positionals.length === 0) {
  const list = "config/build/prose/type_names.json";
  const known = JSON.parse(readFileSync(join(root, list), "utf8")) as TypeCounts;
  const shared = values.write ? typeNames.shortened(known) : known;
  if (values.write) writeFileSync(join(root, list), `${JSON.stringify(shared, null, 2)}\n`);
  report(list, typeNames.findings(shared));
  report("config/build/prose/exceptions.ts", exceptions.unused());
}
if (values.commits) report("git log", subjectFindings(commitSubjects(root)));

if (values.count)
  for (const [rule, count] of [...counts].sort((one, other) => other[1] - one[1])) console.log(count, rule);
const found = counts.values().reduce((sum, count) => sum + count, 0);
if (found > 0)
  console.error(`${found} findings in ${paths.length} files; docs/contributing/style.md explains the rules`);
process.exitCode = found > 0 ? 1 : 0;
