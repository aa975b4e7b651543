/** Each rule of comments, names and prose finds a bad text and accepts a plain one. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Exceptions } from "#config/build/prose/exceptions.ts";
import {
  markdownFindings,
  sourceFindings,
  subjectFindings,
  wrapMarkdown,
  wrapSource,
} from "#config/build/prose/rules.ts";
import { scan } from "#config/build/prose/scan.ts";
import { commitSubjects, listFiles } from "#config/build/prose/tree.ts";
import { TypeNames } from "#config/build/prose/type_names.ts";

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

test("a headless list item or tag of a docstring is found, and text in strings is ignored", () => {
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

test("lines of Markdown over 100 columns are found and wrapped, except for tables, code and links", () => {
  const long = `${"word ".repeat(30).trim()}\n`;
  assert.equal(markdownFindings(long).length, 1);
  assert.equal(wrapMarkdown(`- ${long}`), `- ${"word ".repeat(19).trim()}\n  ${"word ".repeat(11).trim()}\n`);
  assert.equal(
    wrapMarkdown(`- a\n\n    ${long}`),
    `- a\n\n    ${"word ".repeat(19).trim()}\n    ${"word ".repeat(11).trim()}\n`,
  );
  assert.deepEqual(markdownFindings(wrapMarkdown(long)), []);
  for (const unchanged of [
    `| ${long.trim()} |\n`,
    `\`\`\`\n${long}\`\`\`\n`,
    `Text\n\n    ${long}      ${long}\nText\n`,
    `<https://example.org/${"x".repeat(100)}>\n`,
  ]) {
    assert.equal(wrapMarkdown(unchanged), unchanged);
    assert.deepEqual(markdownFindings(unchanged), []);
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

test("strings, templates and regular expressions hold no comments and no names", () => {
  const source = [
    "const pattern = a / b /* first */ + /[/*]held/.test(c) + d[0] / 2; // second",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of a template
    "const text = `// told ${ { answer: `/* kept ${e}` }.f } // ${g /* third */} */`;",
    "if (/\\/\\/'/.test(h)) i('// asked', \"/* door */\");",
  ].join("\n");
  const { comments, identifiers } = scan(source);
  assert.deepEqual(
    comments.map(({ start, end }) => source.slice(start, end)),
    ["/* first */", "// second", "/* third */"],
  );
  assert.deepEqual([...identifiers].sort(), ["a", "answer", "b", "c", "d", "e", "g", "h", "i", "pattern", "text"]);
});

test("a name that two files export as a type is found, unless it is known to be shared", () => {
  const source =
    "export interface One {}\nexport type Two = One;\nexport declare abstract class Three {}\nclass Four {}\nexport { type Five } from 'x';\nexport type { Six };\nexport const type = Four;";
  assert.deepEqual([...scan(source).exportedTypes], ["One", "Two", "Three"]);
  const names = new TypeNames();
  for (const path of ["core/a.ts", "core/b.ts", "modules/mod_a/c.ts"]) names.add(path, ["Entry"]);
  for (const path of ["core/a.ts", "test/a.ts", "modules/mod_a/pages/a.js", "core/cli/scaffold/a.ts"])
    names.add(path, ["Page"]);
  const textsFor = (known: Record<string, number>) => names.findings(known).map(({ text }) => text);
  assert.deepEqual(textsFor({}), ["Entry: core/a.ts, core/b.ts, modules/mod_a/c.ts"]);
  assert.deepEqual(textsFor({ Entry: 2 }), ["Entry: core/a.ts, core/b.ts, modules/mod_a/c.ts"]);
  assert.deepEqual(textsFor({ Entry: 3 }), []);
  assert.deepEqual(textsFor({ Entry: 4, Page: 2 }), ["Entry: 3 and not 4", "Page: 1 and not 2"]);
  assert.deepEqual(names.shortened({ Entry: 4, Page: 2 }), { Entry: 3 });
});

test("an exception allows a word in one file, and is found when nothing needs it", () => {
  const exceptions = new Exceptions([{ path: "core/a.ts", words: ["answers", "place"] }]);
  const findings = sourceFindings("core/a.ts", "/** It is made anew. */\nexport const answers = 1;");
  assert.deepEqual(
    exceptions.filter("core/a.ts", findings).map(({ word }) => word),
    ["anew"],
  );
  assert.deepEqual(exceptions.filter("core/b.ts", findings), findings);
  assert.deepEqual(
    exceptions.unused().map(({ text }) => text),
    ["core/a.ts: place"],
  );
});

test("an unpacked archive is checked without git, and has no commits", (t) => {
  const root = makeTree(t);
  assert.deepEqual(listFiles(root, []), ["README.md", "core/a.ts", "modules/mod_a/b.mjs"]);
  assert.deepEqual(listFiles(root, [join(root, "core"), join(root, "README.md")]), ["README.md", "core/a.ts"]);
  assert.deepEqual(commitSubjects(root), []);
});

const noGit = spawnSync("git", ["--version"]).error !== undefined && "there is no git";

test("a clone lists what git tracks, and a shallow one does not check commits", { skip: noGit }, (t) => {
  const root = makeTree(t);
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-C", root, "-c", "user.name=a", "-c", "user.email=a@example.org", ...args], {
      env: { ...process.env, GIT_COMMITTER_DATE: "2050-01-01T00:00:00Z" },
      stdio: "ignore",
    });
  git("init");
  git("add", "core", "README.md");
  for (const subject of ["one", "two"]) git("commit", "--allow-empty", "-m", subject);
  assert.deepEqual(listFiles(root, []).sort(), ["README.md", "core/a.ts"]);
  assert.deepEqual(listFiles(root, [join(root, "core")]), ["core/a.ts"]);
  assert.deepEqual(commitSubjects(root).filter(Boolean), ["two", "one"]);
  git("clone", "--depth", "1", pathToFileURL(root).href, join(root, "shallow"));
  assert.deepEqual(commitSubjects(join(root, "shallow")), []);
});

function makeTree(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), "modhost-prose-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const files = ["README.md", "core/a.ts", "modules/mod_a/b.mjs", "core/c.json", "node_modules/d/d.js", "dist/e.js"];
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), "");
  }
  return root;
}
