import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MetadataStore, memoryStores } from "modhost/node";
import { failure } from "#node/util/errors.ts";
import { MountFixture, skip } from "./support.ts";

describe("mounts on a full disk", { skip }, () => {
  test("report in the log what they cannot store, end, and can be mounted again", {
    timeout: 120_000,
  }, async () => {
    await using fixture = await MountFixture.make();
    let full = false;
    const { blocks, metadata } = memoryStores();
    const transaction: MetadataStore["transaction"] = async (run) => {
      if (full) throw failure("STORE_FULL", { path: "x", reason: "no space left" });
      return metadata.transaction(run);
    };
    const failing: MetadataStore = Object.assign(Object.create(metadata), { transaction });
    const node = await fixture.open({ stores: async () => ({ blocks, metadata: failing }) });
    await node.mounts.mount(fixture);
    await fixture.shell("mkdir ipns/local/new");
    full = true;
    const logged = Promise.withResolvers<string>();
    node.log.listen(({ message }) => /^the block store .*no space left/.test(message) && logged.resolve(message));
    await node.mounts.unmount();
    await logged.promise;
    assert.equal(node.mounts.active, false);
    assert.deepEqual(await fixture.mounted(), []);
    full = false;
    await node.mounts.mount(fixture);
    assert.equal((await fixture.mounted()).length, 2);
  });
});
