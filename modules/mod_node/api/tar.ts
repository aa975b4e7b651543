/** Tar archives stored as DAGs. */
import type { CID } from "multiformats/cid";
import { readObject } from "../content/dag/object/node.ts";
import { addArchive } from "../content/tar_archive/add.ts";
import { catArchive, requireArchive } from "../content/tar_archive/cat.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { PreemptibleBatch } from "../storage/blockstore/preemptible_batch.ts";
import { type ByteStream, LazyByteStream } from "./byte_stream.ts";
import { type ByteSource, type CallOptions, type IpfsPath, pathText, piecesOf, readOptions } from "./common.ts";

export interface TarAddResult {
  readonly cid: CID;
  /** Total bytes of all blocks. */
  readonly size: number;
}

export interface TarApi {
  /**
   * Adds a tar archive and resolves when it is durable. @throws NodeError for an invalid archive
   */
  add(archive: ByteSource, options?: CallOptions): Promise<TarAddResult>;
  /** Exports an archive that `add` has added. @throws NodeError for any other node */
  cat(path: IpfsPath, options?: CallOptions): ByteStream;
}

export function tarApi(node: LowLevelNode): TarApi {
  return {
    async add(archive, options = {}) {
      const { signal, offline } = readOptions(options);
      const batch = new PreemptibleBatch(node.blocks, node.lock, { signal, offline });
      const unguard = node.pins.guard(() => batch.unlinked());
      try {
        await batch.enter();
        const { cid, size } = await addArchive(piecesOf(archive), batch, node.reader({ signal, offline: true }));
        await batch.flushThen(() => node.sync());
        return { cid, size };
      } finally {
        batch.leave();
        unguard();
      }
    },
    cat: (path, options = {}) =>
      new LazyByteStream({
        async open() {
          const how = readOptions(options);
          const read = node.reader(how);
          const { cid } = await node.resolve(pathText(path), how);
          const root = await readObject(cid, read);
          requireArchive(root);
          return catArchive(root, read, how.signal);
        },
      }),
  };
}
