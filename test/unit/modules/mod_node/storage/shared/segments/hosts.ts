/** Hosts of one store in memory, for the tests of its blocks. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CID } from "multiformats/cid";
import type { SharedLog } from "#node/storage/shared/log.ts";
import { MemoryLog } from "#node/storage/shared/memory_log.ts";
import { type Faults, MemoryObjects } from "#node/storage/shared/s3/memory_objects.ts";
import { openSharedBlocks } from "#node/storage/shared/segments/open.ts";
import type { SharedBlocks, SharedBlocksOptions } from "#node/storage/shared/segments/store.ts";

const home = mkdtempSync(join(tmpdir(), "modhost-shared-blocks-"));
process.once("exit", () => rmSync(home, { recursive: true, force: true }));
let folders = 0;

export interface Host {
  readonly blocks: SharedBlocks;
  readonly log: SharedLog;
  readonly objects: MemoryObjects;
  readonly folder: string;
  /** In good order; the log as well. */
  close(): Promise<void>;
}

type Options = Partial<SharedBlocksOptions> & { readonly faults?: Faults };

export class SharedStore {
  readonly log = new MemoryLog();
  readonly contents: MemoryObjects["contents"] = new Map();
  #epochs = 0;

  async open({ faults = {}, ...options }: Options = {}): Promise<Host> {
    const log = this.log.open();
    const objects = new MemoryObjects(this.contents, faults);
    const folder = options.folder ?? join(home, `host.${++folders}`);
    const remove = (cids: readonly CID[]) => this.#remove(log, cids);
    const blocks = await openSharedBlocks({ folder, objects, log, remove, segmentBytes: 64 * 1024, ...options });
    return {
      blocks,
      log,
      objects,
      folder,
      async close() {
        await blocks.close();
        await log.close();
      },
    };
  }

  /** What a collection does that nobody objects to. */
  async #remove(log: SharedLog, cids: readonly CID[]): Promise<void> {
    this.#epochs += 1;
    const epoch = this.#epochs;
    await log.commit((upTo) => ({
      entries: [
        { kind: "condemned", epoch, upTo, list: { cids: cids.map(({ bytes }) => bytes) } },
        { kind: "removed", epoch, rescued: { cids: [] } },
      ],
      result: undefined,
    }));
  }
}
