/** A temporary LMDB table for data that does not fit into memory. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { open, type RangeOptions } from "lmdb";
import { byteTables, causeOf, type Table } from "./open.ts";

/** Maximum bytes of a key. */
export const MAX_KEY = 1978;

export interface Scratch {
  readonly table: Table;
  /** Reads the entries of `range` in order, all at the same time. */
  page(range: RangeOptions): { readonly key: Buffer; readonly value: Buffer }[];
  /**
   * Runs `operations`, which only calls `put` of the table. Every reader sees the changes when the
   * promise resolves.
   */
  write(operations: () => void): Promise<void>;
  /** Closes the table and removes its files. */
  close(): Promise<void>;
}

/**
 * Opens a temporary table below `folder`, which is created when missing. Data is not flushed to the
 * disk. Where the system allows it, the files are unlinked at once, so that even a killed process
 * leaves nothing behind.
 */
export async function openScratch(folder: string): Promise<Scratch> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = await mkdtemp(join(folder, "scratch-"));
  const remove = () => rm(path, { recursive: true, force: true });
  let table: ReturnType<typeof open<Buffer, Buffer>>;
  try {
    table = open<Buffer, Buffer>({ path, ...byteTables, noSubdir: false, noSync: true });
  } finally {
    // Windows does not unlink open files.
    await remove().catch(() => {});
  }
  return {
    table,
    page: (range) => [...table.getRange(range)],
    async write(operations) {
      await table.batch(operations).catch(async (error: unknown) => {
        throw await causeOf(error);
      });
      table.resetReadTxn();
    },
    async close() {
      await table.close();
      await remove();
    },
  };
}
