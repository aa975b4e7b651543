/**
 * `npm run test:package`: follows a package to another machine, with npm and its registry. It packs
 * the host, installs it in an empty folder and makes a module there, which tests and packs itself.
 * Then it installs both tarballs in another empty folder and serves. In a third folder it installs
 * the host without the packages of the node and serves; then the command from the log installs the
 * node. Prints each step. Exits with 1 if one fails.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import http from "node:http";
import https from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Program } from "#test/unit/core/cli/spawned.ts";
import { write } from "#test/unit/core/module/support.ts";
import { pack, run } from "./packed.ts";
import { useVisits } from "./visits.ts";

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
await step("npx modhost serves both modules", () =>
  serving(operators, async (ask) => {
    assert.equal(await ask("http", "/hello/greet/Ada"), "Good day, Ada!\n");
    assert.equal(await ask("http", "/common"), "CommonJS");
  }),
);

const small = join(packed.folder, "small");
await mkdir(small);
await step("npm install modhost.tgz --omit=optional, in an empty folder", () =>
  run("npm", ["install", "--omit=optional", packed.tarball], small),
);
const lean = await sizeOf(small);
console.log(`${lean.packages} packages, ${lean.mebibytes.toFixed(1)} MiB`);
assert.ok(lean.packages <= 90 && lean.mebibytes <= 25, "an installation without the node has become too large");
await run("npm", ["ls", "--all", "--omit=dev"], small);
await step("npx modhost new plain --js", () => run("npx", ["modhost", "new", "plain", "--js"], small));
const plain = join(small, "mod_plain");
await step("npm install --omit=optional, in mod_plain", () => run("npm", ["install", "--omit=optional"], plain));
assert.match(await step("npm test, in mod_plain", () => run("npm", ["test"], plain)), /pass 2\b/);
await write(small, { "modhost.config.yaml": "modules_enabled: [http, plain, node]\nplugin_paths: [.]\n" });
await step("npx modhost serves the module without the node, and logs what the node needs", async () => {
  const { failed, log } = await serving(small, async (ask) => {
    assert.equal(await ask("http", "/plain/greet/Ada"), "Hello, Ada!\n");
    assert.equal(await ask("https", "/plain/greet/Ada"), "Hello, Ada!\n");
  });
  assert.deepEqual(failed, ["node"]);
  assert.equal(log.match(/needs the package lmdb, .*: npm install --include=optional installs it/g)?.length, 1);
});
await step("npm install --include=optional", () => run("npm", ["install", "--include=optional"], small));
const whole = await sizeOf(small);
console.log(`${whole.packages} packages, ${whole.mebibytes.toFixed(1)} MiB`);
await step("npx modhost serves the node", async () => {
  assert.deepEqual((await serving(small, async () => undefined)).failed, []);
});

type Ask = (scheme: string, path: string) => Promise<string>;

/**
 * Starts the program that is installed in a folder, and calls `use`. Returns the modules that
 * failed, and the log.
 */
async function serving(folder: string, use: (ask: Ask) => Promise<void>) {
  const program = new Program(folder, join(folder, "node_modules/modhost/core/cli/launch.mjs"));
  const { started, kill, ended } = await program.serve(["run"], {
    MODHOST_HTTPS_PORTS: "0",
    MODHOST_NODE_OFFLINE: "true",
  });
  await use(async (scheme, path) => {
    const port = started.ports.find((each) => each.scheme === scheme)?.port;
    const options = { host: "127.0.0.1", port, path, rejectUnauthorized: false };
    const [response] = await once((scheme === "https" ? https : http).get(options), "response");
    return text(response);
  });
  kill("SIGTERM");
  const { code, stderr } = await ended;
  assert.equal(code, 0, stderr);
  return { failed: started.failed.map(({ name }) => name), log: stderr };
}

/** Counts the packages that npm has installed in a folder, and their size. */
async function sizeOf(folder: string): Promise<{ readonly packages: number; readonly mebibytes: number }> {
  const { packages } = JSON.parse(await readFile(join(folder, "node_modules/.package-lock.json"), "utf8"));
  const size = await run("du", ["-sk", "node_modules"], folder);
  return { packages: Object.keys(packages).length, mebibytes: Number.parseInt(size, 10) / 1024 };
}

const example = fileURLToPath(new URL("../../../docs/guides/extend/visits", import.meta.url));
const visits = await step("npm pack, in docs/guides/extend/visits", () =>
  run("npm", ["pack", "--pack-destination", packed.folder], example),
);
const extended = join(packed.folder, "extended");
await mkdir(extended);
await step("npm install modhost.tgz modhost-mod-visits.tgz, in an empty folder", () =>
  run("npm", ["install", packed.tarball, join(packed.folder, visits.trim().split("\n").at(-1) ?? "")], extended),
);
await step("npx modhost serves it, and uses each of its contributions", () => useVisits(extended));

async function step<T>(name: string, does: () => Promise<T>): Promise<T> {
  const start = performance.now();
  process.stdout.write(`${name} ... `);
  const result = await does();
  console.log(`${((performance.now() - start) / 1000).toFixed(1)} s`);
  return result;
}
