/** An LMDB table for what is too much for memory while some work goes on, and of no use to anybody afterwards. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { open, type RangeOptions } from "lmdb";
import { byteTables, type Table } from "./open.ts";

/** Bytes of the longest key. */
export const MAX_KEY = 1978;

export interface Scratch {
  readonly table: Table;
  /** Some entries in order; those of `range`, read at once. */
  page(range: RangeOptions): { readonly key: Buffer; readonly value: Buffer }[];
  /** Runs `operations`, which only calls `put` of the table; to be seen by all who read when it resolves. */
  write(operations: () => void): Promise<void>;
  /** Nothing is left of it. */
  close(): Promise<void>;
}

/**
 * Opens one below `folder`, which is made when missing. Nothing is flushed to the disk. Where the system allows it the
 * files lose their names at once, so that even a process that is killed leaves nothing behind.
 */
export async function openScratch(folder: string): Promise<Scratch> {
  await mkdir(folder, { recursive: true });
  const path = await mkdtemp(join(folder, "scratch-"));
  const remove = () => rm(path, { recursive: true, force: true });
  let table: ReturnType<typeof open<Buffer, Buffer>>;
  try {
    table = open<Buffer, Buffer>({ path, ...byteTables, noSubdir: false, noSync: true });
  } finally {
    // Windows keeps the names of open files.
    await remove().catch(() => {});
  }
  return {
    table,
    page: (range) => [...table.getRange(range)],
    async write(operations) {
      await table.batch(operations);
      table.resetReadTxn();
    },
    async close() {
      await table.close();
      await remove();
    },
  };
}
