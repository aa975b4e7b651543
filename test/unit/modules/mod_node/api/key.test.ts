import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryNode } from "./support.ts";

test("keys are created, listed, renamed, exported, imported and removed", async (t) => {
  const { key } = await memoryNode(t);
  const made = await key.gen("one");
  assert.deepEqual(Object.keys(made).sort(), ["id", "name"]);
  assert.match(made.id, /^k51/);
  const { id: old } = await key.info("one", { ipnsBase: "b58mh" });
  assert.match(old, /^12D3/);
  assert.deepEqual(
    (await key.list()).map(({ name }) => name),
    ["self", "one"],
  );
  assert.deepEqual(await key.info("self"), (await key.list())[0]);
  const file = await key.export("one");
  assert.deepEqual(await key.rename("one", "two"), { id: made.id, was: "one", now: "two", overwrite: false });
  assert.deepEqual(await key.import("one", file), made);
  assert.deepEqual(await key.rename("one", "two", { force: true }), {
    id: made.id,
    was: "one",
    now: "two",
    overwrite: true,
  });
  assert.deepEqual(await key.rm("two"), { name: "two", id: made.id });
  await assert.rejects(key.info("two"), { name: "NodeError", message: "no key named two was found" });
  await assert.rejects(key.import("long", new Uint8Array(65_537)), /longer than 65536 bytes/);
  await assert.rejects(key.list({ ipnsBase: "none" }), { name: "NodeError" });
});

test("a rotation stores the present identity as a key", async (t) => {
  const { key, config } = await memoryNode(t);
  const self = await key.info("self");
  await assert.rejects(key.rotate({ oldkey: undefined }), /must be provided/);
  await key.rotate({ oldkey: "before" });
  assert.equal((await key.info("before")).id, self.id);
  assert.notEqual(await config.get("Identity.PeerID"), (await key.info("before", { ipnsBase: "b58mh" })).id);
});
