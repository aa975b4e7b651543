import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MetadataStore, memoryStores } from "modhost/node";
import { failure } from "#node/util/errors.ts";
import { MountPlace, skip } from "./support.ts";

describe("mounts that end badly", { skip }, () => {
  test("what cannot be kept is told in the log; the mounts are gone, and can be had again", {
    timeout: 120_000,
  }, async () => {
    await using place = await MountPlace.make();
    let full = false;
    const { blocks, metadata } = memoryStores();
    const transaction: MetadataStore["transaction"] = async (run) => {
      if (full) throw failure("STORE_FULL", { path: "x", reason: "no space left" });
      return metadata.transaction(run);
    };
    const failing: MetadataStore = Object.assign(Object.create(metadata), { transaction });
    const node = await place.open({ stores: async () => ({ blocks, metadata: failing }) });
    await node.mounts.mount(place);
    await place.shell("mkdir ipns/local/new");
    full = true;
    const told = Promise.withResolvers<string>();
    node.log.listen(({ message }) => /^the block store .*no space left/.test(message) && told.resolve(message));
    await node.mounts.unmount();
    await told.promise;
    assert.equal(node.mounts.active, false);
    assert.deepEqual(await place.mounted(), []);
    full = false;
    await node.mounts.mount(place);
    assert.equal((await place.mounted()).length, 2);
  });
});
