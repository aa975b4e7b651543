/** Opens LMDB environments with the options that this node needs. */
import { execFile } from "node:child_process";
import { mkdir, open as openFile, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Database, open } from "lmdb";
import type { MakeRoom } from "../disk_reserve.ts";
import { keepPrivate, PRIVATE_FILE, PRIVATE_FOLDER } from "../private_files.ts";
import { whyUnchecked } from "./patches/layout.ts";

/** Receives a sentence that the operator should read. */
export type Notice = (sentence: string) => void;

/** Keys and values are bytes. */
export type Table = Database<Buffer, Buffer>;

export interface Environment {
  /** Returns the table of a name. Each table may be opened only once. */
  table(name: string): Table;
  /**
   * Runs `operations`, which only calls `put` and `remove` of tables, and writes all changes in one
   * transaction. They are durable when the promise resolves, and have no effect when it rejects.
   * Values must not be changed until then.
   */
  write(operations: () => void): Promise<void>;
  /** Size on the disk in bytes. */
  bytes(): Promise<number>;
  close(): Promise<void>;
}

/** The files are damaged or are not an LMDB environment. */
export class EnvironmentDamaged extends Error {
  override readonly name = "EnvironmentDamaged";
}

/** A transaction could not be written and had no effect. */
export class CommitFailed extends Error {
  override readonly name = "CommitFailed";
}

const MAX_TABLES = 8;
/** The name of this file may have a query in its URL when the host imports it. */
const extension = new URL(import.meta.url).pathname.endsWith(".ts") ? "ts" : "js";
const probe = fileURLToPath(new URL(`./patches/probe.${extension}`, import.meta.url));

/** Options of every environment; `openEnvironment` explains them. */
export const byteTables = {
  overlappingSync: false,
  eventTurnBatching: false,
  encoding: "binary",
  keyEncoding: "binary",
} as const;

/**
 * Opens the environment in a folder, which is created when missing.
 *
 * LMDB maps its file into memory and trusts its content: a damaged file crashes the process. So
 * unless `close` left the file as it is now, a separate process reads it through first; see
 * `patches/README.md`. `onNotice` is called when a part of that check is skipped. A write that
 * fails because the disk is full is tried again if `makeRoom` has freed space.
 *
 * Asynchronous transaction callbacks of lmdb-js 3.5 are never called on Node 24 and later, so
 * writes use batches. Batching by event turn is off, because a failing commit would reject a
 * promise that nobody handles. `overlappingSync` is off, so that a commit resolves only when it is
 * durable.
 *
 * @throws EnvironmentDamaged; errors of the file system
 */
export async function openEnvironment(
  folder: string,
  onNotice: Notice = () => {},
  makeRoom: MakeRoom = async () => false,
): Promise<Environment> {
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
  const data = join(folder, "data.mdb");
  const sealFile = join(folder, "closed");
  const found = await fingerprint(data);
  noticeOnce(whyUnchecked(), onNotice);
  const isSealed = found === undefined || found === (await readFile(sealFile, "utf8").catch(() => undefined));
  if (!isSealed) noticeOnce(await probeEnvironment(folder), onNotice);
  await rm(sealFile, { force: true });
  const root = open<Buffer, Buffer>({
    path: folder,
    noSubdir: false,
    maxDbs: MAX_TABLES,
    ...byteTables,
  });
  for (const file of [data, join(folder, "lock.mdb")]) await keepPrivate(file);
  if (found === undefined) await syncNew(folder, data);
  return {
    table: (name) => root.openDB<Buffer, Buffer>(name, { encoding: "binary", keyEncoding: "binary" }),
    async write(operations) {
      try {
        await root.batch(operations).catch(async (error: unknown) => {
          if (!(await makeRoom())) throw error;
          await root.batch(operations);
        });
      } catch (error) {
        const cause = await causeOf(error);
        throw new CommitFailed(cause.message, { cause });
      }
      root.resetReadTxn();
    },
    bytes: async () => (await stat(data)).size,
    async close() {
      await root.close();
      const left = await fingerprint(data);
      // Without this file, the next start only takes longer.
      if (left !== undefined) await writeFile(sealFile, left, { mode: PRIVATE_FILE }).catch(() => {});
    },
  };
}

async function fingerprint(file: string): Promise<string | undefined> {
  try {
    const { size, mtime } = await stat(file);
    return size === 0 ? undefined : `${size} ${mtime.getTime()}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Sentences that were already reported. A node has several environments and should report each
 * sentence once.
 */
const givenNotices = new Set<string>();

function noticeOnce(sentence: string | undefined, onNotice: Notice): void {
  if (sentence === undefined || givenNotices.has(sentence)) return;
  givenNotices.add(sentence);
  onNotice(sentence);
}

/**
 * Reads the whole environment in another process. Resolves with a sentence when that process
 * skipped a check.
 * @throws EnvironmentDamaged
 */
async function probeEnvironment(folder: string): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [probe, folder]);
    return stdout.trim() || undefined;
  } catch (error) {
    const { stderr, signal } = error as { stderr?: string; signal?: string };
    const said = stderr?.split("\n").find((line) => line.includes("Error:"));
    throw new EnvironmentDamaged(said ?? `reading it ended with ${signal ?? "a failure"}`, { cause: error });
  }
}

/** Returns the reason of a failed commit. lmdb-js provides it only in a promise on the error. */
export async function causeOf(error: unknown): Promise<Error> {
  const { commitError = Promise.reject(error) } = error as { commitError?: Promise<never> };
  return commitError.catch((cause: Error) => cause);
}

/** Makes a new environment durable before anything depends on it. */
async function syncNew(folder: string, data: string): Promise<void> {
  if (process.platform === "win32") return;
  for (const path of [data, folder, dirname(folder)]) {
    const handle = await openFile(path, "r");
    await handle.sync().finally(() => handle.close());
  }
}
