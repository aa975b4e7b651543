/** What the linter counts and looks up: each rule finds a file that breaks it. And what commands may come to together. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { write } from "#test/unit/core/module/support.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const lines = (count: number) => Array.from({ length: count }, (_, at) => `export const line${at} = ${at};`).join("\n");
const body = (count: number) => Array.from({ length: count }, (_, at) => `  console.log(${at});`).join("\n");
const long = (count: number) => `export function long(): void {\n${body(count)}\n}\n`;

/** The rules that are broken, by file. */
function lint(cwd: string): Promise<Map<string, string>> {
  const program = join(root, "node_modules/@biomejs/biome/bin/biome");
  const args = [program, "lint", "--colors=off", "--max-diagnostics=none", "."];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd }, (_, stdout, stderr) => {
      const said = (stdout + stderr).matchAll(/^(\S+\.ts):\d+:\d+ lint\/(\S+)/gm);
      resolve(new Map([...said].map(([, file = "", rule = ""]) => [file, rule])));
    });
  });
}

test("long files, long functions and packages that are not declared are found", async () => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-lint-"));
  try {
    for (const file of ["biome.json", "package.json"]) await copyFile(join(root, file), join(folder, file));
    await write(folder, {
      "test/tools/lint/paced_streams.grit": readFileSync(join(root, "test/tools/lint/paced_streams.grit"), "utf8"),
      "core/long_file.ts": lines(401),
      "test/long_file.ts": lines(401),
      "core/file.ts": lines(400),
      "core/long_function.ts": long(62),
      "modules/mod_x/long_function.ts": long(62),
      "core/function.ts": long(56),
      "core/reason.ts": `// biome-ignore lint/complexity/noExcessiveLinesPerFunction: because\n${long(62)}`,
      "test/function.ts": long(62),
      "core/undeclared.ts": 'import it from "nobody-declares-this";\nit();\n',
      "test/undeclared.ts": 'import it from "nobody-declares-this";\nit();\n',
      "core/development.ts": 'import fastify from "fastify";\nfastify();\n',
      "test/development.ts": 'import fastify from "fastify";\nfastify();\n',
      "core/declared.ts": 'import Koa from "koa";\nnew Koa();\n',
    });
    assert.deepEqual(Object.fromEntries([...(await lint(folder))].sort()), {
      "core/development.ts": "correctness/noUndeclaredDependencies",
      "core/long_file.ts": "style/noExcessiveLinesPerFile",
      "core/long_function.ts": "complexity/noExcessiveLinesPerFunction",
      "core/undeclared.ts": "correctness/noUndeclaredDependencies",
      "modules/mod_x/long_function.ts": "complexity/noExcessiveLinesPerFunction",
      "test/long_file.ts": "style/noExcessiveLinesPerFile",
      "test/undeclared.ts": "correctness/noUndeclaredDependencies",
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("commands translate, and take under 33 lines each", () => {
  const files = globSync("modules/mod_http_api/commands/**/*.ts", { cwd: root });
  const texts = files.map((file) => readFileSync(join(root, file), "utf8"));
  const lines = texts.reduce((sum, text) => sum + text.split("\n").length - 1, 0);
  const commands = texts.reduce((sum, text) => sum + text.matchAll(/\b(?:read|write)Command\(/g).toArray().length, 0);
  assert.ok(commands > 100 && lines < 33 * commands, `${lines} lines for ${commands} commands`);
});
