/**
 * The part of one host in a collection of a store that several hosts share: reports the roots, and
 * the blocks that running calls refer to.
 */
import type { CID } from "multiformats/cid";
import { CidSet } from "../../formats/cid/set.ts";
import type { CollectingHost } from "../../storage/shared/gc/collections.ts";
import type { SharedLock } from "../../util/async/shared_lock.ts";
import { failure } from "../../util/errors.ts";
import { markingBuffers, markPinned, markPresent, present } from "./gc.ts";
import type { Pins } from "./pins.ts";

export interface CollectingHostDeps {
  readonly pins: Pins;
  readonly lock: SharedLock;
  /**
   * More roots, of the files and of mounts: those of all hosts, as far as they are known. Called
   * with the lock held.
   */
  readonly roots: () => Promise<readonly CID[]>;
  /** Roots that may be known to this host only. Called with the lock held. */
  readonly rootsInProgress: () => Promise<readonly CID[]>;
}

export function collectingHost({ pins, lock, roots, rootsInProgress: underWay }: CollectingHostDeps): CollectingHost {
  const alone = async <T>(run: () => Promise<T>): Promise<T> => {
    const release = await lock.acquireExclusive();
    return await run().finally(release);
  };
  return {
    alone,
    voidCalls: () => lock.voidCalls(),
    async mark(retained, find, { signal, pinned = false }) {
      const buffers = markingBuffers();
      const read = async (cid: CID) => {
        const bytes = await find(cid, buffers);
        if (bytes === undefined) throw failure("BLOCK_NOT_FOUND");
        return bytes;
      };
      const [error] = await markPinned(pins, retained, read, { buffers, signal });
      if (error !== undefined) throw failure("COLLECTION_FAILED", { reason: `garbage collection aborted: ${error}` });
      if (pinned) return;
      const here = (cid: CID) => find(cid, buffers);
      for (const root of await alone(roots)) await markPresent(root, retained, here, { buffers, signal });
    },
    async *guarded(find) {
      const seen = new CidSet();
      const buffers = markingBuffers();
      const here = (cid: CID) => find(cid, buffers);
      for (const root of [...(await underWay()), ...pins.guarded()]) yield* present(root, seen, here, { buffers });
    },
  };
}
