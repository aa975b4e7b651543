import { setImmediate as nextTurn } from "node:timers/promises";
import { CID } from "multiformats/cid";
import { matches } from "../../formats/cid/hashes.ts";
import { failure } from "../../util/errors.ts";
import type { BlockStore } from "./store.ts";

interface MemoryBlock {
  readonly bytes: Uint8Array;
  /** By `cid.toString()`. */
  readonly forms: Map<string, CID>;
}

/** Blocks kept in memory only: for calculations that store nothing, and for tests. `bytes` counts data alone. */
export function memoryBlocks(): BlockStore {
  const held = new Map<string, MemoryBlock>();
  let closed = false;
  let forms = 0;

  const keyOf = (cid: CID) => Buffer.from(cid.multihash.bytes).toString("latin1");
  function find(cid: CID): Uint8Array | undefined {
    if (closed) throw failure("STORE_CLOSED");
    const entry = held.get(keyOf(cid));
    return entry?.forms.has(cid.toString()) ? entry.bytes : undefined;
  }
  async function mustBeOpen(): Promise<void> {
    if (closed) throw failure("STORE_CLOSED");
  }

  return {
    verifies: false,
    get: async (cid) => find(cid),
    has: async (cid) => find(cid) !== undefined,
    size: async (cid) => find(cid)?.length,
    async put(blocks) {
      await mustBeOpen();
      for (const { cid, bytes } of blocks) {
        const key = keyOf(cid);
        const entry = held.get(key) ?? { bytes, forms: new Map() };
        held.set(key, entry);
        if (entry.forms.has(cid.toString())) continue;
        // Parsed anew: a CID may be a view into something large.
        entry.forms.set(cid.toString(), CID.decode(cid.bytes.slice()));
        forms += 1;
      }
    },
    sync: mustBeOpen,
    async delete(cids) {
      await mustBeOpen();
      return cids.map((cid) => {
        const entry = held.get(keyOf(cid));
        if (!entry?.forms.delete(cid.toString())) return false;
        if (entry.forms.size === 0) held.delete(keyOf(cid));
        forms -= 1;
        return true;
      });
    },
    async *keys() {
      await mustBeOpen();
      for (const entry of held.values()) {
        for (const cid of entry.forms.values()) {
          yield cid;
          await mustBeOpen();
        }
        await nextTurn();
      }
    },
    async stat() {
      await mustBeOpen();
      let bytes = 0;
      for (const entry of held.values()) bytes += entry.bytes.length;
      return { blocks: forms, bytes };
    },
    async compact(signal) {
      await mustBeOpen();
      signal?.throwIfAborted();
    },
    async check(cid) {
      const bytes = find(cid);
      return bytes === undefined ? undefined : matches(cid, bytes);
    },
    async close() {
      closed = true;
      held.clear();
    },
  };
}
