import assert from "node:assert/strict";
import { request } from "node:http";
import { describe, test } from "node:test";
import { parseCid } from "modhost/node";
import type { Change } from "#core/types.ts";
import type { FilesPage, FilesStat, Uploaded } from "#modules/mod_http_admin_node/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { sharedNode, startNode } from "./support.ts";

const shared = sharedNode();

const namesIn = async (path: string, fields: Record<string, string | number> = {}) => {
  const page = await shared.host.get<FilesPage>("/node/files", { path, ...fields });
  return page.entries.map(({ name }) => name);
};

describe("an upload", () => {
  test("creates its folders, and gets the CID that the add command gives it", async () => {
    const { host } = shared;
    const content = "x".repeat(300_000);
    const response = await host.upload("/up/deep/a.txt", content);
    const uploaded = (await response.json()) as Uploaded;
    const { cid } = await host.node.add({ content }, { onlyHash: true });
    assert.deepEqual([response.status, uploaded], [200, { path: "/up/deep/a.txt", cid: String(cid), size: 300_000 }]);
    const stat = await host.get<FilesStat>("/node/files/stat", { path: "/up/deep/a.txt" });
    assert.deepEqual([stat.type, stat.size, stat.media_type], ["file", 300_000, "text/plain; charset=utf-8"]);
  });

  test("replaces an existing file only on request, and refuses before it reads the body", async () => {
    const { host } = shared;
    await host.upload("/up/one", "first");
    const refused = await host.upload("/up/one", "second");
    assert.equal(refused.status, 409);
    assert.match(await refused.text(), /conflict.*The file \/up\/one already exists/);
    assert.equal((await host.upload("/up/one", "second", { replace: true })).status, 200);
    const content = await host.ask("/node/files/content?path=/up/one&as=text");
    assert.equal(await content.text(), "second");
    assert.equal((await host.upload("/up", "third", { replace: true })).status, 409);
  });

  for (const path of ["relative", "/ipfs/x", "/up/", "/up/../x", "/ipns/name/x"]) {
    test(`to ${path} is refused`, async () => {
      assert.equal((await shared.host.upload(path, "x")).status, 400);
    });
  }

  test("is not at its path if the host has lost its session of a shared store meanwhile, and can be repeated", async (t) => {
    const { host } = shared;
    const { pins, lock } = host.node.lowLevel;
    const guard = pins.guard.bind(pins);
    // Simulates what happens when the session is opened again: blocks that were written are not
    // linked yet.
    const lose = (roots: Parameters<typeof guard>[0]) => {
      lock.voidCalls();
      return guard(roots);
    };
    t.mock.method(pins, "guard", lose, { times: 1 });
    assert.equal((await host.upload("/up/lost", "x")).status, 503);
    assert.equal((await host.ask("/node/files/stat?path=/up/lost")).status, 404);
    assert.equal((await host.upload("/up/lost", "x")).status, 200);
  });

  test("that is interrupted leaves neither a file nor a pin", async (t) => {
    const host = await startNode();
    t.after(() => host.stop());
    const pins = () => Array.fromAsync(host.node.pin.ls({ type: "recursive" }), ({ cid }) => String(cid));
    const pinned = await pins();
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const sent = request({
      socketPath: host.socketPath,
      path: "/admin/api/node/files/content?path=/cut/half.bin",
      method: "POST",
      agent: false,
      headers: { "x-modhost-admin": "1", "content-length": "1000000" },
    });
    sent.on("error", () => undefined).on("close", resolve);
    await new Promise((written) => sent.write(Buffer.alloc(500_000), written));
    // Waits until the server has begun with the upload.
    const { lowLevel } = host.node;
    const hasBegun = async () => !lowLevel.pins.guarded().next().done || (await lowLevel.stat()).blocks >= 3;
    await eventually("the server has begun with the upload", hasBegun, { every: 5 });
    sent.destroy();
    await closed;
    // When the module is unloaded, its running uploads have ended.
    await host.unload("http_admin_node");
    assert.deepEqual(await Array.fromAsync(host.node.files.ls("/")), []);
    assert.deepEqual(await pins(), pinned);
    const { what, result } =
      (await host.get<Change[]>("/changes")).find((change) => change.what.includes("half")) ?? {};
    assert.deepEqual([what, result], ["upload /cut/half.bin (0 bytes)", "failed"]);
    assert.deepEqual(host.logged("error"), []);
  });

  test("makes one record for many files, which names the failures", async (t) => {
    const host = await startNode();
    t.after(() => host.stop());
    for (const name of ["a", "b", "c"]) await host.upload(`/batch/${name}`, name);
    await host.upload("/batch/a", "again");
    await host.unload("http_admin_node");
    const records = await host.get<Change[]>("/changes");
    const [record] = records.filter(({ what }) => what.startsWith("upload"));
    assert.match(record?.what ?? "", /^upload 4 files, 3 bytes, the first \/batch\/a$/);
    assert.equal(record?.result, "failed");
    assert.match(record?.error?.message ?? "", /^1 of 4 were not stored; the first: \/batch\/a: The file/);
    assert.match(record?.by ?? "", /^admin socket/);
  });
});

describe("the namespace", () => {
  test("is listed in pages: folders first, sorted and searched", async () => {
    const { host } = shared;
    await host.post("/node/files/mkdir", { path: "/list/zoo", parents: true });
    for (const name of ["b10.txt", "b9.txt", "a.png"]) await host.upload(`/list/${name}`, name.repeat(3));
    assert.deepEqual(await namesIn("/list"), ["zoo", "a.png", "b9.txt", "b10.txt"]);
    assert.deepEqual(await namesIn("/list", { order: "down" }), ["b10.txt", "b9.txt", "a.png", "zoo"]);
    assert.deepEqual(await namesIn("/list", { sort: "type" }), ["zoo", "a.png", "b9.txt", "b10.txt"]);
    assert.deepEqual(await namesIn("/list", { search: "B1" }), ["b10.txt"]);
    const page = await host.get<FilesPage>("/node/files", { path: "/list", offset: 1, limit: 2 });
    assert.deepEqual([page.total, page.entries.map(({ name }) => name)], [4, ["a.png", "b9.txt"]]);
    assert.deepEqual(
      page.entries.map(({ type, size, is_here }) => [type, size, is_here]),
      [
        ["file", 15, true],
        ["file", 18, true],
      ],
    );
    assert.match(await host.refusal("GET", "/node/files", { path: "/list", limit: 5000 }), /^400 invalid/);
    assert.match(await host.refusal("GET", "/node/files", { path: "/nothing" }), /^404 not_found: Nothing exists at/);
    assert.match(await host.refusal("GET", "/node/files", { path: "/list/a.png" }), /^400 invalid: .* is a file/);
  });

  test("is listed without asking peers if a block is missing", async () => {
    const { host } = shared;
    const missing = "QmYCvbfNbCwFR45HiNP45rwJgvatpiW38D961L5qAhUM5Y";
    const links = [{ Name: "far", Hash: parseCid(missing), Tsize: 77 }];
    const directory = await host.node.dag.put({ Data: Uint8Array.of(8, 1), Links: links }, { storeCodec: "dag-pb" });
    const { entries } = await host.get<FilesPage>("/node/files", { path: `/ipfs/${directory}` });
    assert.deepEqual(entries, [{ name: "far", cid: missing, type: "unknown", size: 77, is_here: false }]);
  });

  test("is listed if a directory is sharded, and with any names of entries", async () => {
    const { host } = shared;
    const names = ["<script>alert(1)<script>", "x".repeat(4096), "\u202egnp.exe", "a b?#%", "é"];
    await host.node.config.set("Experimental.ShardingEnabled", true);
    const files = names.map((name) => ({ path: name, content: name }));
    const all = await Array.fromAsync(host.node.addAll(files, { wrapWithDirectory: true, pin: false }));
    await host.node.config.set("Experimental.ShardingEnabled", false);
    const path = `/ipfs/${all.at(-1)?.cid}`;
    assert.deepEqual((await namesIn(path)).toSorted(), names.toSorted());
    const [first] = (await host.get<FilesPage>("/node/files", { path, search: "script" })).entries;
    assert.deepEqual([first?.type, first?.size, first?.is_here], ["file", 24, true]);
    await host.post("/node/files/import", { cid: path, to: "/odd" });
    for (const name of names) {
      const response = await host.ask(
        `/node/files/content?${new URLSearchParams({ path: `/odd/${name}`, as: "text" })}`,
      );
      assert.deepEqual([response.status, await response.text()], [200, name]);
    }
  });

  test("changes by move, copy, import and remove, which replace nothing unless told to", async () => {
    const { host } = shared;
    const { cid } = (await (await host.upload("/change/a", "text of a")).json()) as Uploaded;
    await host.post("/node/files/copy", { from: "/change/a", to: "/change/b" });
    await host.post("/node/files/move", { from: "/change/a", to: "/change/c" });
    await host.post("/node/files/import", { cid, to: "/change/new/d" });
    await host.post("/node/files/import", { cid: `ipfs://${cid}`, to: "/change/new/e" });
    assert.deepEqual(await namesIn("/change"), ["new", "b", "c"]);
    assert.match(
      await host.refusal("POST", "/node/files/move", { from: "/change/b", to: "/change/c" }),
      /^409 conflict/,
    );
    assert.match(
      await host.refusal("POST", "/node/files/copy", { from: "/change/b", to: "/change/c" }),
      /^409 conflict/,
    );
    await host.post("/node/files/copy", { from: "/change/b", to: "/change/c", replace: true });
    await host.post("/node/files/move", { from: "/change/b", to: "/change/c", replace: true });
    assert.match(
      await host.refusal("POST", "/node/files/remove", { path: "/change/new" }),
      /^400 invalid: .*directory/,
    );
    await host.post("/node/files/remove", { path: "/change/new", recursive: true });
    assert.deepEqual(await namesIn("/change"), ["c"]);
    assert.match(await host.refusal("POST", "/node/files/remove", { path: "/change/none" }), /^404 not_found/);
    assert.match(await host.refusal("POST", "/node/files/import", { cid: "nonsense", to: "/x" }), /^400 invalid/);
    const whats = (await host.get<Change[]>("/changes")).map(({ what, result }) => `${what}: ${result}`);
    assert.ok(whats.includes("move /change/a to /change/c: done"));
    assert.ok(whats.includes("move /change/b to /change/c: failed"));
  });
});
