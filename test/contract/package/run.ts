/**
 * `npm run test:package`: the way of a package from here to a stranger's machine, with npm and its registry: the host is
 * packed and installed in an empty folder, makes a module there, the module tests and packs itself, and both tarballs are
 * installed in another empty folder and serve. Prints each step; ends with 1 where one fails.
 */
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Program } from "#test/unit/core/cli/spawned.ts";
import { write } from "#test/unit/core/module/support.ts";
import { pack, run } from "./packed.ts";

await using packed = await step("npm pack", pack);
const authors = join(packed.folder, "authors");
const operators = join(packed.folder, "operators");
await mkdir(authors);
await mkdir(operators);

await step("npm install modhost.tgz, in an empty folder", () => run("npm", ["install", packed.tarball], authors));
const version = await step("npx modhost --version", () => run("npx", ["modhost", "--version"], authors));
assert.ok(packed.tarball.endsWith(`modhost-${version.trim()}.tgz`), version);

const made = join(authors, "mod_hello");
await step("npx modhost new hello", () => run("npx", ["modhost", "new", "hello"], authors));
await step("npm install, in mod_hello", () => run("npm", ["install"], made));
assert.match(await step("npm test, in mod_hello", () => run("npm", ["test"], made)), /pass 2\b/);
const module = await step("npm pack, in mod_hello", () => run("npm", ["pack"], made));
const tarball = join(made, module.trim().split("\n").at(-1) ?? "");

await step("npm install modhost.tgz modhost-mod-hello.tgz, in an empty folder", () => {
  return run("npm", ["install", packed.tarball, tarball], operators);
});
await write(operators, {
  "modhost.config.yaml": "modules_enabled: [http, hello, common]\nplugin_paths: [.]\nhello_greeting: Good day\n",
  "mod_common.cjs": `module.exports = (module) => module.provides("http", { route: { GET: "CommonJS" } });`,
});
await step("npx modhost serves both modules", async () => {
  await using program = new Program(operators, join(operators, "node_modules/.bin/modhost"));
  const { started, kill, ended } = await program.serve(["run"]);
  const port = started.ports.find(({ scheme }) => scheme === "http")?.port;
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  assert.equal(await ask("/hello/greet/Ada"), "Good day, Ada!\n");
  assert.equal(await ask("/common"), "CommonJS");
  kill("SIGTERM");
  assert.equal((await ended).code, 0);
});

async function step<T>(name: string, does: () => Promise<T>): Promise<T> {
  const start = performance.now();
  process.stdout.write(`${name} ... `);
  const result = await does();
  console.log(`${((performance.now() - start) / 1000).toFixed(1)} s`);
  return result;
}
