/**
 * Reads a Pebble database, as Kubo's `pebbleds` has it, from the disk. It writes nothing, not even
 * a lock. The caller makes sure that nobody else has the database open.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { inSlices, type Steps, sortedSteps } from "../../util/async/steps.ts";
import { DatabaseDamaged } from "../lsm/fields.ts";
import { compareEntries, type Entry, type Tombstone } from "./entry.ts";
import { type Changes, readLog } from "./log.ts";
import { readManifest, type TableFile } from "./manifest.ts";
import { Table } from "./table.ts";

/** Supported versions of the format: from the first that Pebble 2 opens to the one of Kubo 0.43. */
const oldestFormat = 13;
const newestFormat = 24;
const bytewise = "leveldb.BytewiseComparator";

export interface KeyRange {
  readonly gte: string;
  readonly lt: string;
}

/** Whether a folder with files of these names contains a Pebble database. */
export const isPebble = (names: readonly string[]): boolean => markIn(names, "manifest") !== undefined;

/** Reads keys and values. Methods throw DatabaseDamaged for data that cannot be read. */
export class PebbleDatabase {
  readonly #folder: string;
  /**
   * Lists of tables that do not overlap each other, in order. Tables of the first level may
   * overlap, so each has a list of its own.
   */
  readonly #runs: readonly (readonly TableFile[])[];
  /** Entries of the journal that are in no table yet, sorted. */
  readonly #recent: readonly Entry[];
  readonly #tombstones: readonly Tombstone[];

  /** `entries` are sorted. */
  private constructor(folder: string, tables: readonly TableFile[], { entries, tombstones }: Changes) {
    this.#folder = folder;
    this.#runs = runsOf(tables);
    this.#recent = entries;
    this.#tombstones = tombstones;
  }

  /**
   * Opens a database.
   * @throws DatabaseDamaged
   */
  static async open(folder: string): Promise<PebbleDatabase> {
    const names = await namesIn(folder);
    const manifest = markIn(names, "manifest");
    if (manifest === undefined) throw new DatabaseDamaged(`${folder} has no Pebble database`);
    const format = Number(markIn(names, "format-version"));
    if (!(format >= oldestFormat && format <= newestFormat)) {
      throw new DatabaseDamaged(
        `${folder} has the format ${format}; this node reads ${oldestFormat} to ${newestFormat}, that of Kubo 0.43`,
      );
    }
    const path = join(folder, manifest);
    const { comparer, firstLog, tables } = await reading(path, readManifest(path, await needed(path)));
    if (comparer !== bytewise) throw new DatabaseDamaged(`${path} says that keys are ordered by ${comparer}`);
    const { entries, tombstones } = await readLogs(folder, names, firstLog);
    const changes = { entries: await inSlices(sortedSteps(entries, compareEntries)), tombstones };
    for (const { number } of tables) {
      const table = await Table.open(tablePath(folder, number));
      for (const tombstone of table.tombstones) changes.tombstones.push(tombstone);
      await table.close();
    }
    return new PebbleDatabase(folder, tables, changes);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    for await (const [, value] of this.iterator({ gte: key, lt: `${key}\0` })) return value;
    return undefined;
  }

  /** Yields entries in the order of their keys. */
  async *iterator({ gte, lt }: KeyRange): AsyncGenerator<[key: string, value: Uint8Array]> {
    const from = Buffer.from(gte);
    const to = Buffer.from(lt);
    const sources = [new Source([this.#recent][Symbol.iterator](), from)];
    for (const run of this.#runs) sources.push(new Source(this.#blocksOf(run, from, to), from));
    try {
      let before: Buffer | undefined;
      for (let source = await first(sources); source !== undefined; source = await first(sources)) {
        const entry = source.take();
        if (Buffer.compare(entry.key, to) >= 0) return;
        // The latest change of a key comes first and hides the earlier ones.
        if (before !== undefined && entry.key.equals(before)) continue;
        before = entry.key;
        if (entry.value !== undefined && !this.#isCovered(entry)) yield [entry.key.toString(), entry.value];
      }
    } finally {
      for (const source of sources) await source.close();
    }
  }

  async *#blocksOf(run: readonly TableFile[], from: Buffer, to: Buffer): AsyncGenerator<readonly Entry[]> {
    for (const { number, smallest, largest } of run) {
      if (Buffer.compare(largest, from) < 0 || Buffer.compare(smallest, to) >= 0) continue;
      const table = await Table.open(tablePath(this.#folder, number));
      try {
        yield* table.blocks(from);
      } finally {
        await table.close();
      }
    }
  }

  #isCovered({ key, sequence }: Entry): boolean {
    return this.#tombstones.some(
      (each) => each.sequence > sequence && Buffer.compare(each.start, key) <= 0 && Buffer.compare(key, each.end) < 0,
    );
  }
}

/** Sorted changes that are read block by block. */
class Source {
  readonly #blocks: Iterator<readonly Entry[]> | AsyncIterator<readonly Entry[]>;
  readonly #from: Buffer;
  #block: readonly Entry[] = [];
  #at = 0;

  constructor(blocks: Iterator<readonly Entry[]> | AsyncIterator<readonly Entry[]>, from: Buffer) {
    this.#blocks = blocks;
    this.#from = from;
  }

  /** Returns the next change from `from` on, or a promise of it if a block has to be read. */
  peek(): Entry | undefined | Promise<Entry | undefined> {
    const entry = this.#block[this.#at];
    return entry === undefined || Buffer.compare(entry.key, this.#from) < 0 ? this.#seek() : entry;
  }

  take(): Entry {
    return this.#block[this.#at++] as Entry;
  }

  async close(): Promise<void> {
    await this.#blocks.return?.();
  }

  async #seek(): Promise<Entry | undefined> {
    for (;;) {
      const found = firstFrom(this.#block, this.#at, this.#from);
      this.#at = found;
      if (found < this.#block.length) return this.#block[found];
      const next = await this.#blocks.next();
      this.#at = 0;
      this.#block = next.done === true ? [] : next.value;
      if (next.done === true) return undefined;
    }
  }
}

/** Returns the index of the first entry with a key of at least `from`. */
function firstFrom(entries: readonly Entry[], at: number, from: Buffer): number {
  let low = at;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Buffer.compare((entries[middle] as Entry).key, from) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the source with the next change; undefined when all are exhausted. */
async function first(sources: readonly Source[]): Promise<Source | undefined> {
  let least: Source | undefined;
  let leastEntry: Entry | undefined;
  for (const source of sources) {
    const found = source.peek();
    const entry = found instanceof Promise ? await found : found;
    if (entry === undefined || (leastEntry !== undefined && compareEntries(leastEntry, entry) <= 0)) continue;
    least = source;
    leastEntry = entry;
  }
  return least;
}

/**
 * Each table of the first level is a list of its own, because these tables may overlap; those of
 * one deeper level do not.
 */
function runsOf(tables: readonly TableFile[]): TableFile[][] {
  const runs = tables.filter(({ level }) => level === 0).map((table) => [table]);
  const deeper = Map.groupBy(
    tables.filter(({ level }) => level > 0),
    ({ level }) => level,
  );
  for (const run of deeper.values()) {
    runs.push(run.sort((one, other) => Buffer.compare(one.smallest, other.smallest)));
  }
  return runs;
}

/**
 * Reads the logs from `firstLog` on, the earliest first. A crash may have cut off only the last
 * one.
 */
async function readLogs(folder: string, names: readonly string[], firstLog: number): Promise<Changes> {
  const changes: Changes = { entries: [], tombstones: [] };
  const logs = names.flatMap((name) => {
    const [, number, part] = /^(\d+)(-\d+)?\.log$/.exec(name) ?? [];
    return number === undefined || Number(number) < firstLog ? [] : [{ name, number: Number(number), part }];
  });
  logs.sort((one, other) => one.number - other.number);
  for (const { name, number, part } of logs) {
    if (part !== undefined) throw new DatabaseDamaged(`${folder} has ${name}: logs in several parts are not supported`);
    const path = join(folder, name);
    const mayEndEarly = number === logs.at(-1)?.number;
    await reading(path, readLog(path, await needed(path), { log: number, mayEndEarly }, changes));
  }
  return changes;
}

const tablePath = (folder: string, number: number): string => join(folder, `${number.toString().padStart(6, "0")}.sst`);

/** Returns VALUE of the latest file that is named `marker.NAME.NUMBER.VALUE`. */
function markIn(names: readonly string[], mark: string): string | undefined {
  let found: { readonly number: number; readonly value: string } | undefined;
  for (const name of names) {
    const [, named, number, value = ""] = /^marker\.([^.]+)\.(\d+)\.(.+)$/.exec(name) ?? [];
    if (named === mark && Number(number) > (found?.number ?? -1)) found = { number: Number(number), value };
  }
  return found?.value;
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
}

/** Maximum size of a log or manifest; those of Kubo have some tens of megabytes. */
const MAX_JOURNAL = 2 ** 30;

async function needed(path: string): Promise<Buffer> {
  try {
    const { size } = await stat(path);
    if (size > MAX_JOURNAL)
      throw new DatabaseDamaged(`${path} has ${size} bytes, but only ${MAX_JOURNAL} are supported`);
    return await readFile(path);
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === "ENOENT" ? new DatabaseDamaged(`${path} is missing`) : error;
  }
}

/** Runs the steps and adds the path to the message of errors. */
async function reading<T>(path: string, steps: Steps<T>): Promise<T> {
  try {
    return await inSlices(steps);
  } catch (error) {
    if (!(error instanceof DatabaseDamaged) || error.path !== undefined) throw error;
    throw new DatabaseDamaged(`${path} cannot be read: ${error.message}`, path);
  }
}
