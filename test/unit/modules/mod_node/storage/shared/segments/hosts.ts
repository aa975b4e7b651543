/** Hosts of one store in memory, for the tests of its blocks. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CID } from "multiformats/cid";
import type { BlockList, SharedLog } from "#node/storage/shared/log.ts";
import { openSharedBlocks } from "#node/storage/shared/segments/open.ts";
import type { SharedBlocksOptions } from "#node/storage/shared/segments/options.ts";
import type { SharedBlocks } from "#node/storage/shared/segments/store.ts";
import { MemoryLog } from "#test/support/engines/memory_log.ts";
import { type Faults, MemoryObjects } from "#test/support/engines/memory_objects.ts";

const home = mkdtempSync(join(tmpdir(), "modhost-shared-blocks-"));
process.once("exit", () => rmSync(home, { recursive: true, force: true }));
let folders = 0;

export interface Host {
  readonly blocks: SharedBlocks;
  readonly log: SharedLog;
  readonly objects: MemoryObjects;
  readonly folder: string;
  /** Closes the store and the log without faults. */
  close(): Promise<void>;
}

type Options = Partial<SharedBlocksOptions> & { readonly faults?: Faults };

export class SharedStore {
  readonly log = new MemoryLog();
  readonly contents: MemoryObjects["contents"] = new Map();
  readonly #hosts = new Set<Host>();
  readonly #undecided = new Map<number, BlockList>();
  #removing: Promise<void> = Promise.resolve();
  #epochs = 0;

  async open({ faults = {}, ...options }: Options = {}): Promise<Host> {
    const log = this.log.open();
    const objects = new MemoryObjects(this.contents, faults);
    const folder = options.folder ?? join(home, `host.${++folders}`);
    // Only one collection at a time, as under a lock.
    const remove = (cids: readonly CID[]) => {
      this.#removing = this.#removing.catch(() => undefined).then(() => this.#remove(log, cids));
      return this.#removing;
    };
    const blocks = await openSharedBlocks({ folder, objects, log, remove, segmentBytes: 64 * 1024, ...options });
    const host: Host = {
      blocks,
      log,
      objects,
      folder,
      close: async () => {
        this.end(host);
        await blocks.close();
        await log.close();
      },
    };
    this.#hosts.add(host);
    return host;
  }

  /** Wakes all callers that wait for this host. */
  end(host: Host): void {
    this.#hosts.delete(host);
  }

  /** A collection without objections: no host begins to refer to condemned blocks. */
  async #remove(log: SharedLog, cids: readonly CID[]): Promise<void> {
    this.#epochs += 1;
    const epoch = this.#epochs;
    const list = { cids: cids.map(({ bytes }) => bytes) };
    // A collection whose commit had no response does not continue.
    for (const [before, rescued] of this.#undecided) {
      await untilDone(() =>
        log.commit(() => ({ entries: [{ kind: "removed", epoch: before, rescued }], result: undefined })),
      );
      this.#undecided.delete(before);
    }
    this.#undecided.set(epoch, list);
    await log.commit((upTo) => ({ entries: [{ kind: "condemned", epoch, upTo, list }], result: undefined }));
    for (const { blocks } of this.#hosts) {
      // A host that has ended refers to nothing.
      await untilDone(() => blocks.condemnable.suspend(epoch)).catch(() => undefined);
    }
    const decision = { kind: "removed", epoch, rescued: { cids: [] } } as const;
    await untilDone(() => log.commit(() => ({ entries: [decision], result: undefined })));
    this.#undecided.delete(epoch);
  }
}

/** Tries again however often the store is unreachable. */
async function untilDone(run: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if ((error as { code?: string }).code !== "STORE_UNAVAILABLE") throw error;
      await nextTurn();
    }
  }
}
