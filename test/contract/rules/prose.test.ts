/** Each rule of comments, names and prose finds a text that breaks it, and lets a plain one pass. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  markdownFindings,
  sourceFindings,
  subjectFindings,
  wrapMarkdown,
  wrapSource,
} from "#config/build/prose/rules.ts";

const rulesOf = (source: string, path = "core/file.ts") =>
  sourceFindings(path, source).map(({ rule }) => rule.split(":")[0]);

test("sentences of comments without a subject are found, and questions and plain sentences pass", () => {
  for (const sentence of ["What nobody caught.", "Those of the services.", "Of one peer.", "One of `hosts`."])
    assert.deepEqual(rulesOf(`/** ${sentence} */\nconst a = 1;`), ["headless sentence"], sentence);
  assert.deepEqual(rulesOf("// A subject comes first. Who ends the process, and why.\n"), ["headless sentence"]);
  assert.deepEqual(rulesOf("/** It listens no more. */\n"), ["negation"]);
  assert.deepEqual(rulesOf("// It is made anew.\n"), ["'anew'"]);
  for (const sentence of ["Who ends it?", "Of course it ends.", "No more than 3 bytes.", "`What` is a type."])
    assert.deepEqual(rulesOf(`/** ${sentence} */\nconst a = 1;`), [], sentence);
});

test("a headless item of a list or tag of a docstring is found, and text in strings is none", () => {
  assert.deepEqual(rulesOf("/**\n * Two things:\n * - What is first.\n * @returns Those of b.\n */\n"), [
    "headless sentence",
    "headless sentence",
  ]);
  assert.deepEqual(rulesOf('const text = "// What nobody caught."; const html = `<a href="//x">What</a>`;'), []);
});

test("banned words are found in names of files, functions, types, members and parameters", () => {
  const source =
    "interface KeptPlace { isTold: boolean }\nfunction examine(answer: number) { return class { #held = answer; }; }";
  assert.deepEqual(
    sourceFindings("core/figures.ts", source).map(({ text }) => text.split(":")[0]),
    ["figures", "KeptPlace", "isTold", "examine", "answer", "#held"],
  );
  assert.deepEqual(rulesOf("interface Replacement { holder: string }"), []);
});

test("comments over 100 columns are found and wrapped, and directives and lines of code stay", () => {
  const long = `  // ${"word ".repeat(30).trim()}\n`;
  assert.deepEqual(rulesOf(long), ["comment wider than 100 columns"]);
  const wrapped = wrapSource(long);
  assert.ok(wrapped.split("\n").every((line) => line.length <= 100 && (line === "" || line.startsWith("  // word"))));
  assert.deepEqual(rulesOf(wrapped), []);
  const docstring = wrapSource(`/** ${"word ".repeat(30).trim()} */\n`);
  assert.match(docstring, /^\/\*\*\n \* word[^\n]{80,}\n \* word[ word]+\n \*\/\n$/);
  for (const source of [`// biome-ignore lint/x: ${"word ".repeat(30)}\n`, `const a = "${"// word ".repeat(30)}";\n`])
    assert.equal(wrapSource(source), source);
});

test("lines of Markdown over 100 columns are found and wrapped, but for tables, fences and links", () => {
  const long = `${"word ".repeat(30).trim()}\n`;
  assert.equal(markdownFindings(long).length, 1);
  assert.equal(wrapMarkdown(`- ${long}`), `- ${"word ".repeat(19).trim()}\n  ${"word ".repeat(11).trim()}\n`);
  assert.deepEqual(markdownFindings(wrapMarkdown(long)), []);
  for (const kept of [
    `| ${long.trim()} |\n`,
    `\`\`\`\n${long}\`\`\`\n`,
    `<https://example.org/${"x".repeat(100)}>\n`,
  ]) {
    assert.equal(wrapMarkdown(kept), kept);
    assert.deepEqual(markdownFindings(kept), []);
  }
});

test("several assignments by one list are found, and an exchange of values passes", () => {
  assert.deepEqual(rulesOf("const [a, b] = [1, 2];"), ["one declaration a variable"]);
  assert.deepEqual(rulesOf("[this.a, this.b] = [one, two];"), ["one assignment a statement"]);
  for (const source of ["[a, b] = [b, a];", "const [a, b] = pair();", "const [a = 1, b] = [x(), 2];"])
    assert.deepEqual(rulesOf(source), [], source);
});

test("names of tests without a subject are found", () => {
  assert.deepEqual(rulesOf('test("what is there stays", () => {});'), ["name of a test"]);
  assert.deepEqual(rulesOf('test("a file stays", () => {});'), []);
});

test("commit subjects over 72 characters are found, and merges pass", () => {
  const subjects = ["x".repeat(72), "x".repeat(73), `Merge ${"x".repeat(90)}`];
  assert.deepEqual(
    subjectFindings(subjects).map(({ text }) => text.length),
    [73],
  );
});
