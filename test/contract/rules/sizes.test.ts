/**
 * Tests that each rule of the linter finds a file that breaks it, and that all commands together
 * stay short.
 */
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
const body = (count: number) => Array.from({ length: count }, (_, at) => `  console.log(${at});`).join("\n");
const long = (count: number) => `export function long(): void {\n${body(count)}\n}\n`;

/** Resolves to the broken rules by file. */
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

test("long functions and undeclared packages are found", async () => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-lint-"));
  try {
    for (const file of ["biome.json", "package.json"]) await copyFile(join(root, file), join(folder, file));
    await write(folder, {
      "config/build/lint/paced_streams.grit": readFileSync(join(root, "config/build/lint/paced_streams.grit"), "utf8"),
      "core/long_function.ts": long(66),
      "modules/mod_x/long_function.ts": long(66),
      "core/function.ts": long(60),
      "core/reason.ts": `// biome-ignore lint/complexity/noExcessiveLinesPerFunction: because\n${long(66)}`,
      "test/function.ts": long(66),
      "core/undeclared.ts": 'import it from "nobody-declares-this";\nit();\n',
      "test/undeclared.ts": 'import it from "nobody-declares-this";\nit();\n',
      "core/declared.ts": 'import Koa from "koa";\nnew Koa();\n',
    });
    assert.deepEqual(Object.fromEntries([...(await lint(folder))].sort()), {
      "core/long_function.ts": "complexity/noExcessiveLinesPerFunction",
      "core/undeclared.ts": "correctness/noUndeclaredDependencies",
      "modules/mod_x/long_function.ts": "complexity/noExcessiveLinesPerFunction",
      "test/undeclared.ts": "correctness/noUndeclaredDependencies",
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("commands only translate, and have fewer than 30 lines of code on average", () => {
  const files = globSync("modules/mod_http_api/commands/**/*.ts", { cwd: root });
  const texts = files.map((file) => readFileSync(join(root, file), "utf8"));
  const code = texts.map((text) => text.split("\n").filter((line) => !/^\s*(?:\/\/|\/?\*|$)/.test(line)));
  const lines = code.reduce((sum, { length }) => sum + length, 0);
  const commands = texts.reduce((sum, text) => sum + text.matchAll(/\b(?:read|write)Command\(/g).toArray().length, 0);
  assert.ok(commands > 100 && lines < 30 * commands, `${lines} lines for ${commands} commands`);
});
