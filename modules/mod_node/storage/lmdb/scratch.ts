/** A temporary LMDB table for data that exceeds the memory while some work goes on. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { open, type RangeOptions } from "lmdb";
import { byteTables, causeOf, type Table } from "./open.ts";

/** Bytes of the longest key. */
export const MAX_KEY = 1978;

export interface Scratch {
  readonly table: Table;
  /** The entries of `range` in order, read at once. */
  page(range: RangeOptions): { readonly key: Buffer; readonly value: Buffer }[];
  /** Runs `operations`, which only calls `put` of the table; visible to every reader when it resolves. */
  write(operations: () => void): Promise<void>;
  /** Removes everything. */
  close(): Promise<void>;
}

/**
 * Opens one below `folder`, which is made when missing. Nothing is flushed. Where the system allows it the files are
 * unlinked at once, so that even a killed process leaves nothing behind.
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
