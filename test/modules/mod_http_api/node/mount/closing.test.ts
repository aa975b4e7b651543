import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { memoryStores } from "modhost/node";
import { failure } from "../../../../../modules/mod_http_api/node/errors.ts";
import { MountPlace, skip } from "./support.ts";

describe("mounts that end badly", { skip }, () => {
  test("what cannot be kept is told in the log; the mounts are gone, and can be had again", async () => {
    await using place = await MountPlace.make();
    let full = false;
    const { blocks, metadata } = memoryStores();
    const stores = async () => ({
      blocks,
      metadata: Object.assign(Object.create(metadata) as typeof metadata, {
        transaction: async <T>(change: Parameters<typeof metadata.transaction<T>>[0]) => {
          if (full) throw failure("STORE_FULL");
          return metadata.transaction(change);
        },
      }),
    });
    const node = await place.open({ stores });
    await node.mounts.mount(place);
    await place.shell("mkdir ipns/local/new");
    full = true;
    const told = Promise.withResolvers<string>();
    node.log.onEntry = ({ message }) => told.resolve(message);
    await node.mounts.unmount();
    assert.match(await told.promise, /no space left/);
    assert.equal(node.mounts.active, false);
    assert.deepEqual(await place.mounted(), []);
    full = false;
    await node.mounts.mount(place);
    assert.equal((await place.mounted()).length, 2);
  });
});
