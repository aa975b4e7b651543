import assert from "node:assert/strict";
import { test } from "node:test";
import { CID } from "multiformats/cid";
import { type Compared, comparing } from "./compared.ts";

const compared = comparing();
const { same, sameFailure } = compared;

const bytes = (text: string) => new TextEncoder().encode(text);
const link = CID.parse("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");

const values: readonly unknown[] = [
  null,
  true,
  "text é",
  0,
  -1,
  2 ** 53 - 1,
  2 ** 60,
  1.5,
  -0,
  2n ** 63n,
  bytes("bytes"),
  link,
  [],
  {},
  [1, [2, { three: [] }]],
  { b: 1, aa: link, nested: { c: bytes("x"), d: null } },
  new Map([["key", 1]]),
];

test("values are stored and read as the clients store and read them", async () => {
  for (const storeCodec of ["dag-cbor", "dag-json"]) {
    for (const value of values) {
      const put = String(await same((client) => client.dag.put(value, { storeCodec })));
      await same((client) => client.dag.get(CID.parse(put.slice(4))));
    }
  }
  const raw = String(await same((client) => client.dag.put(bytes("raw"), { storeCodec: "raw" })));
  assert.deepEqual(await same((client) => client.dag.get(CID.parse(raw.slice(4)))), {
    value: "bytes raw",
    remainderPath: "",
  });
});

test("values outside the data model are refused with the error texts of the clients", async () => {
  const self: unknown[] = [];
  self.push(self);
  const none = [
    undefined,
    Number.NaN,
    Number.NEGATIVE_INFINITY,
    () => 1,
    Symbol("s"),
    { a: undefined },
    new Date(0),
    [new Set([1])],
    new Map([[1, 1]]),
    2n ** 64n,
    self,
  ];
  for (const value of none) await sameFailure((client) => client.dag.put(value));
  await sameFailure((client) => client.dag.put({}, { storeCodec: "dag-cbor", hashAlg: "none" }));
  await sameFailure((client) => client.dag.put("text", { inputCodec: "raw" }));
  await sameFailure((client) => client.dag.put(bytes("{}"), { inputCodec: "dag-json", storeCodec: "raw" }));
});

test("every key of a map is stored as it is, also special names", async () => {
  const cid = await compared.node.dag.put(JSON.parse('{"__proto__":{"a":1},"constructor":2}'));
  const { value } = await compared.node.dag.get(cid);
  assert.deepEqual(Object.entries(value as object), [
    ["__proto__", { a: 1 }],
    ["constructor", 2],
  ]);
});

test("deep values need no deep stack", async () => {
  let value: unknown = 1;
  for (let depth = 0; depth < 100_000; depth += 1) value = [value];
  const cid = await compared.node.dag.put(value);
  let { value: found } = await compared.node.dag.get(cid);
  for (let depth = 0; depth < 100_000; depth += 1) found = (found as unknown[])[0];
  assert.equal(found, 1);
});

test("dag-pb nodes leave out what they do not have, as those of the clients do", async () => {
  const nodes = [
    { Links: [] },
    { Data: bytes("data"), Links: [] },
    { Data: new Uint8Array(), Links: [] },
    { Links: [{ Hash: link }] },
    { Links: [{ Hash: link, Name: "", Tsize: 0 }] },
    {
      Data: bytes("d"),
      Links: [
        { Hash: link, Name: "a", Tsize: 4 },
        { Hash: link, Name: "b", Tsize: 2 ** 40 },
      ],
    },
  ];
  for (const node of nodes) {
    const put = String(await same((client) => client.dag.put(node, { storeCodec: "dag-pb" })));
    await same((client) => client.dag.get(CID.parse(put.slice(4))));
  }
  const wrong: unknown[] = [
    null,
    bytes("x"),
    { Links: "none" },
    { Links: [], More: 1 },
    { Data: "text", Links: [] },
    { Links: [1] },
    { Links: [{}] },
    { Links: [{ Hash: "Qm" }] },
    { Links: [{ Hash: link, Name: 1 }] },
    { Links: [{ Hash: link, Tsize: 1.5 }] },
    { Links: [{ Hash: link, Tsize: -1 }] },
    {
      Links: [
        { Hash: link, Name: "b" },
        { Hash: link, Name: "a" },
      ],
    },
  ];
  for (const node of wrong) await sameFailure((client) => client.dag.put(node, { storeCodec: "dag-pb" }));
});

test("a path continues through links and values", async () => {
  const { dag } = compared.node;
  const child = await dag.put({ list: [{ deep: "found" }] });
  const root = await dag.put({ child, own: { a: 1 } });
  for (const path of ["child/list/0/deep", "child", "own/a", "/own/", ""]) {
    await same((client) => client.dag.get(root, { path }));
    if (path !== "") await same((client) => client.dag.get(root, { path, localResolve: true }));
  }
  await sameFailure((client) => client.dag.get(root, { path: "own/none" }));
  await same((client) => client.dag.resolve(root, { path: "child/list/0" }));
  await same((client) => client.dag.resolve(`${root}/own/a`));
  assert.equal(await dag.json(`${root}/own`), '{"a":1}');
});

test("a tree is exported as an archive and imported again with its roots pinned", async () => {
  const { dag } = compared.node;
  const root = await dag.put({ leaf: await dag.put({ n: 1 }) });
  const archive = bytes(String(await same((client) => client.dag.export(root))).slice("bytes ".length));
  assert.ok(archive.length > 0);
  const whole = Buffer.concat(await Array.fromAsync(dag.export(root)));
  for (const pinRoots of [true, false]) {
    await same((client) => client.dag.import([whole], { pinRoots }));
    await same((client) => client.dag.import([[whole], [whole]], { pinRoots }));
  }
  assert.deepEqual(await Array.fromAsync(dag.stat(root, { progress: false })), [
    { size: (await Array.fromAsync(dag.stat(root))).at(-1)?.size, numBlocks: 2 },
  ]);
  assert.deepEqual(await Array.fromAsync(dag.import([])), []);
  await assert.rejects(Array.fromAsync(dag.import([bytes("none")])), { name: "NodeError" });
});

test("nodes given as bytes are stored concurrently, and yielded in their order", async () => {
  async function* nodes() {
    for (const n of [1, 2, 3])
      yield (async function* () {
        yield bytes(`{"n":${n}}`);
      })();
  }
  const cids = await Array.fromAsync(compared.node.dag.putAll(nodes(), { inputCodec: "dag-json" }));
  const found = await Promise.all(cids.map((cid) => compared.node.dag.get(cid, { path: "n" })));
  assert.deepEqual(
    found.map(({ value }) => value),
    [1, 2, 3],
  );
});

test("objects are created, changed and inspected as by the client that supports them", async () => {
  const which = "http";
  const cidOf = async (call: Parameters<Compared["same"]>[0]) =>
    CID.parse(String(await same(call, which)).slice("CID ".length));
  const empty = await cidOf((client) => client.object.new());
  const directory = await cidOf((client) => client.object.new({ template: "unixfs-dir" }));
  await sameFailure((client) => client.object.new({ template: "none" }), which);
  const put = await cidOf((client) =>
    client.object.put({ Data: bytes("data"), Links: [{ Name: "l", Hash: empty, Tsize: 0 }] }),
  );
  const linked = await cidOf((client) => client.object.patch.addLink(put, { Name: "a", Hash: directory }));
  await cidOf((client) => client.object.patch.addLink(put, { name: "b", cid: directory }));
  await cidOf((client) => client.object.patch.rmLink(linked, { Name: "l" }));
  await sameFailure((client) => client.object.patch.rmLink(linked, { Name: "none" }), which);
  const appended = await cidOf((client) => client.object.patch.appendData(linked, bytes(" and more")));
  await cidOf((client) => client.object.patch.setData(linked, bytes("other")));
  assert.equal(await same((client) => client.object.data(appended), which), "bytes data and more");
  for (const cid of [empty, directory, appended]) {
    await same((client) => client.object.get(cid), which);
    await same((client) => client.object.links(cid), which);
    await same((client) => client.object.stat(cid), which);
  }
  await same((client) => client.object.patch.addLink(put, { Name: "c", Hash: directory }), "kubo");
  const changes = await compared.node.object.diff(put, linked);
  assert.deepEqual(
    changes.map(({ kind, path }) => [kind, path]),
    [["added", "a"]],
  );
});
