/**
 * Tests that packages are needed: each is replaced by a stand-in, and then the test of its
 * behaviour fails.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const standIn = new URL("stand_in.mjs", import.meta.url).href;

/** Package, test file below `test/unit`, and the name of the test in it. */
const missed = [
  ["koa", "core/http/middleware/middleware.test.ts", "run in order"],
  ["@koa/router", "core/http/routing/routes.test.ts", "the methods of a path are known, whatever the requested method"],
  ["koa-static", "modules/mod_http_files/files.alone.test.ts", "is sent with type, length and validators"],
  ["serve-index", "modules/mod_http_dir_listing/listing.test.ts", "shows sizes and dates for people and for programs"],
  ["formidable", "core/http/message/multipart/parts.test.ts", "gives fields and files in order"],
  ["lilconfig", "core/config/load.test.ts", "ends at the folder of the nearest package.json"],
] as const;

async function run(file: string, name: string, env: NodeJS.ProcessEnv, ...flags: string[]) {
  const { NODE_OPTIONS: _options, NODE_TEST_CONTEXT: _context, ...inherited } = process.env;
  const args = ["--conditions=source", "--test-reporter=spec", ...flags, "--test-name-pattern", name];
  const child = spawn(process.execPath, [...args, `test/unit/${file}`], { cwd: root, env: { ...inherited, ...env } });
  const [said] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return said;
}

for (const [name, file, behaviour] of missed) {
  test(`without ${name} this fails: ${behaviour}`, async () => {
    const said = await run(file, behaviour, { TAKEN_AWAY: name }, "--import", standIn);
    assert.match(said, new RegExp(`^\\s*✖ ${behaviour}`, "m"));
  });
}
