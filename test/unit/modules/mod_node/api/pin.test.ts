import assert from "node:assert/strict";
import { test } from "node:test";
import type { CID } from "multiformats/cid";
import { memoryNode } from "./support.ts";

test("pins are added and removed in all forms of input, and the progress is reported", async (t) => {
  const { block, pin } = await memoryNode(t);
  const cids = await Promise.all(["a", "b", "c"].map((text) => block.put(text, { format: "raw" })));
  const [a, b, c] = cids as [CID, CID, CID];
  const reported: (readonly number[])[] = [];
  const inputs = [a, String(b), { path: `/ipfs/${c}`, recursive: false }];
  const added = await Array.fromAsync(
    pin.addAll(inputs, { progress: (blocks, bytes) => reported.push([blocks, bytes]) }),
  );
  assert.deepEqual(added.map(String), cids.map(String));
  assert.deepEqual(reported, [
    [1, 1],
    [2, 2],
  ]);
  const types = async (paths: readonly CID[]) =>
    (await Array.fromAsync(pin.ls({ paths }))).map(({ cid, type }) => [String(cid), type]);
  assert.deepEqual(await types(cids), [
    [String(a), "recursive"],
    [String(b), "recursive"],
    [String(c), "direct"],
  ]);
  assert.equal(String(await pin.rm(a)), String(a));
  assert.deepEqual((await Array.fromAsync(pin.rmAll([{ cid: b }, c]))).map(String), [String(b), String(c)]);
  await assert.rejects(types([a]), { name: "NodeError", message: `path '${a}' is not pinned` });
});

test("sorted pins are listed once each, and can be iterated twice", async (t) => {
  const { block, pin } = await memoryNode(t);
  const cids = await Promise.all(["a", "b", "c"].map((text) => block.put(text, { format: "raw", pin: true })));
  const pins = await pin.sorted((cid) => cid.toV1().toString(), { type: "recursive" });
  const texts = async () => (await Array.fromAsync(pins)).map(({ text }) => text);
  const found = await texts();
  assert.deepEqual(found, [...found].sort());
  for (const cid of cids) assert.ok(found.includes(cid.toV1().toString()));
  assert.deepEqual(await texts(), found);
  await pins.close();
  const asStored = await pin.sorted(undefined, { type: "recursive" });
  const sorted = await pin.sorted(String, { type: "recursive" });
  assert.deepEqual(await Array.fromAsync(asStored), await Array.fromAsync(sorted));
  assert.deepEqual((await Array.fromAsync(asStored.pages())).flat(), await Array.fromAsync(asStored));
  await assert.rejects(pin.sorted(String, { type: "none" }), /invalid type 'none'/);
});

test("a pin is replaced by another, and a broken pin is reported", async (t) => {
  const { block, files, pin, lowLevel } = await memoryNode(t);
  await files.write("/dir/file", "content", { create: true, parents: true });
  const { cid: dir } = await files.stat("/dir");
  const { cid: file } = await files.stat("/dir/file");
  await pin.add(dir);
  const [found] = await Array.fromAsync(pin.ls({ paths: file }));
  assert.deepEqual([String(found?.cid), found?.type], [String(file), `indirect through ${dir}`]);
  assert.equal((await Array.fromAsync(pin.verify({ verbose: true }))).find(({ cid }) => cid.equals(dir))?.ok, true);
  await files.rm("/dir", { recursive: true });
  await lowLevel.blocks.store.delete([file]);
  const [broken, ...others] = await Array.fromAsync(pin.verify());
  assert.deepEqual([broken?.ok, others], [false, []]);
  assert.equal(String(broken?.cid), String(dir));
  assert.deepEqual(broken?.badNodes, [{ cid: broken?.badNodes[0]?.cid, err: "merkledag: not found" }]);
  assert.equal(String(broken?.badNodes[0]?.cid), String(file));
  const to = await block.put("other", { format: "raw" });
  assert.deepEqual((await pin.update(dir, to)).map(String), [String(dir), String(to)]);
  await assert.rejects(pin.update(dir, to), { message: "'from' cid was not recursively pinned already" });
});

test("pinning services are stored by name, and an unknown one is an error", async (t) => {
  const { remote } = (await memoryNode(t)).pin;
  await remote.service.add("one", { endpoint: "http://127.0.0.1:1/psa/", key: "secret" });
  assert.deepEqual(await remote.service.ls(), [{ service: "one", endpoint: new URL("http://127.0.0.1:1/psa") }]);
  const [requests] = await remote.service.ls({ stat: true, text: true });
  assert.deepEqual(requests, { service: "one", endpoint: "http://127.0.0.1:1/psa", stat: { status: "invalid" } });
  await assert.rejects(Array.fromAsync(remote.ls({ service: "two" })), { message: "service not known" });
  await assert.rejects(remote.rm({ service: undefined }), { message: "a service name must be passed" });
  await remote.service.rm("one");
  assert.deepEqual(await remote.service.ls(), []);
});
