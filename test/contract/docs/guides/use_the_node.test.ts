import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { createTestHost } from "#core/testing/index.ts";
import { apiOnly, RpcServer } from "#test/support/rpc_server.ts";
import { project, readGuide, shownFiles, writeFiles } from "./support.ts";

const run = promisify(execFile);
const guide = readGuide("use-the-node");
const files = shownFiles(guide);
const clients = ["kubo-rpc-client", "ipfs-http-client"] as const;

describe("programs of the guide to the node print the output that it shows", () => {
  let folder: string;
  const printed = async (...program: readonly string[]) => {
    const given = ["--conditions=source", ...program];
    return (await run(process.execPath, given, { cwd: folder, timeout: 300_000 })).stdout;
  };
  /** The environment that the guide sets for the server that it has started. */
  const environmentShown = Object.fromEntries(
    Array.from(guide.matchAll(/^(MODHOST_\w+)=(\S+) npx modhost run\b/gm), ([, name = "", value]) => [name, value]),
  );
  const shownAfter = (name: string) => /```text\n(.*?)```/s.exec(guide.slice(guide.indexOf(`// ${name}\n`)))?.[1];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "modhost-guide-"));
    await writeFiles(folder, files);
    await mkdir(join(folder, "node_modules"));
    await symlink(project, join(folder, "node_modules", "modhost"));
    for (const name of clients) await symlink(join(project, "node_modules", name), join(folder, "node_modules", name));
  });
  after(() => rm(folder, { recursive: true }));

  test("a program with a node of its own", async () => assert.equal(await printed("here.ts"), shownAfter("notes.ts")));
  test("two nodes", async () => assert.equal(await printed("meet.ts"), shownAfter("meet.ts")));
  test("the program for both has 20 lines", () => {
    const lines = files.find(({ name }) => name === "notes.ts")?.code.split("\n") ?? [];
    assert.ok(lines.filter((line) => line.trim() !== "").length <= 20, `${lines.length} lines`);
  });
  test(`the same with ${clients.join(" and with ")}`, async () => {
    const served = files.find(({ name }) => name === "served.ts")?.code ?? assert.fail();
    const data = await mkdtemp(join(folder, "data-"));
    await using server = await RpcServer.start({
      folder: data,
      env: { ...apiOnly, ...environmentShown },
    });
    for (const client of clients) {
      const code = served.replace(clients[0], client);
      await writeFiles(folder, [{ name: `served_by_${client}.ts`, code }]);
      assert.equal(await printed(`served_by_${client}.ts`, server.url), shownAfter("notes.ts"), client);
    }
  });
  test("a module that keeps texts", async () => {
    await using host = await createTestHost({
      modules: [join(folder, "mod_text.ts")],
      config: { node_offline: true, data_path: join(folder, "data") },
    });
    const added = await host.fetch("/text/", { method: "POST", body: "Hello Worlds!\n" });
    const cid = (await added.text()).trim();
    assert.equal(cid, "QmVr26fY1tKyspEJBniVhqxQeEjhF78XerGiqWAwraVLQH");
    assert.equal(await (await host.fetch(`/text/${cid}`)).text(), "Hello Worlds!\n");
  });
});

test("the module on the node of the other guide reports errors to clients", async (t) => {
  const shown = readGuide("module/node").match(/```ts\n(import[^`]*? from "modhost\/node";\n.*?)```/s)?.[1] ?? "";
  const [, imports = "", body = ""] = /^((?:import [^\n]*\n)+)(.*)$/s.exec(shown) ?? [];
  const folder = await mkdtemp(join(tmpdir(), "modhost-guide-"));
  t.after(() => rm(folder, { recursive: true }));
  const code = `${imports}import type { Module } from "modhost";
    export default function notes(module: Module) { module.depends("http");${body}}`;
  await writeFiles(folder, [{ name: "mod_notes.ts", code }]);
  await using server = await createTestHost({
    modules: [join(folder, "mod_notes.ts")],
    config: { modules_enabled: ["http_api"], node_offline: true, data_path: join(folder, "data") },
  });
  const directory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
  const form = new FormData();
  form.append("file", new Blob(["Hello Worlds!\n"]));
  const { Hash } = (await (await server.fetch("/api/v0/add", { method: "POST", body: form })).json()) as {
    Hash: string;
  };
  const get = async (path: string) => {
    const response = await server.fetch(`/notes/of/${path}`);
    return [response.status, response.ok ? await response.text() : ""];
  };
  assert.deepEqual(await get(Hash), [200, "Hello Worlds!\n"]);
  assert.deepEqual(await get(directory), [400, ""]);
  assert.deepEqual(await get("foo"), [400, ""]);
  assert.deepEqual(await get(`${directory}/nope`), [404, ""]);
  assert.deepEqual(await get("QmdfTbBqBPQ7VNxZEYEj14VmRuZBkqFbiwReogJgS1zR1n"), [404, ""]);
});
