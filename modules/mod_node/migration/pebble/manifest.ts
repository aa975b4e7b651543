/**
 * Reads which tables and logs a Pebble database consists of from its manifest, a journal of
 * changes. Source: Pebble's `internal/manifest`.
 */
import type { Steps } from "../../util/async/steps.ts";
import { DatabaseDamaged, Fields } from "../lsm/fields.ts";
import { journalRecords } from "./journal.ts";

export interface TableFile {
  readonly level: number;
  readonly number: number;
  /** First and last key, both inclusive. */
  readonly smallest: Buffer;
  readonly largest: Buffer;
}

export interface Manifest {
  /** Name of the key comparator. */
  readonly comparer: string;
  /** Number of the first log that is needed. Changes of earlier logs are in tables. */
  readonly firstLog: number;
  readonly tables: readonly TableFile[];
}

interface Draft {
  comparer: string;
  firstLog: number;
  /** Tables by level and number. */
  readonly tables: Map<string, TableFile>;
}

type ReadChange = (read: Fields, draft: Draft) => void;

/**
 * Rejects a feature that this node does not support and Kubo does not use.
 * @throws DatabaseDamaged
 */
const unknown = (what: string) => () => {
  throw new DatabaseDamaged(`it has ${what}, which Kubo does not write`);
};

const skipNumber: ReadChange = (read) => void read.varint();

/** Readers of the parts of a change, by the tag before each. */
const changes: Readonly<Record<number, ReadChange>> = {
  1(read, draft) {
    draft.comparer = Buffer.from(read.text()).toString();
  },
  2(read, draft) {
    draft.firstLog = read.varint();
  },
  // Next file number, last sequence number.
  3: skipNumber,
  4: skipNumber,
  // Level, and the key at which its next compaction begins.
  5(read) {
    read.varint();
    read.text();
  },
  6(read, draft) {
    draft.tables.delete(`${read.varint()}/${read.varint()}`);
  },
  7: (read, draft) => addTable(read, draft, { numbers: 0, hasTags: false }),
  9: skipNumber,
  100: (read, draft) => addTable(read, draft, { numbers: 2, hasTags: false }),
  103: (read, draft) => addTable(read, draft, { numbers: 2, hasTags: true }),
  104: unknown("keys of ranges"),
  105: unknown("virtual tables"),
  106: unknown("virtual tables"),
  107: unknown("values in files of their own"),
  108: unknown("values in files of their own"),
};

interface TableForm {
  /** Count of numbers that delimit the sequence numbers in the table. */
  readonly numbers: number;
  readonly hasTags: boolean;
}

/** Tag that ends the list. Tags from 64 on change the meaning of the table. */
const lastTag = 1;
const firstTagThatCounts = 64;

function addTable(read: Fields, draft: Draft, { numbers, hasTags }: TableForm): void {
  const level = read.varint();
  const number = read.varint();
  read.varint();
  const smallest = userKey(read.text());
  const largest = userKey(read.text());
  for (let index = 0; index < numbers; index += 1) read.varint();
  for (let tag = hasTags ? read.varint() : lastTag; tag !== lastTag; tag = read.varint()) {
    if (tag >= firstTagThatCounts) unknown(`tables of the unsupported kind ${tag}`)();
    read.text();
  }
  draft.tables.set(`${level}/${number}`, { level, number, smallest, largest });
}

/** In tables, each key is followed by the number of its change and its kind. */
const trailerLength = 8;

const userKey = (key: Uint8Array): Buffer => Buffer.from(key.subarray(0, Math.max(0, key.length - trailerLength)));

/**
 * Reads a manifest. `path` is for errors.
 * @throws DatabaseDamaged
 */
export function* readManifest(path: string, manifest: Buffer): Steps<Manifest> {
  const draft: Draft = { comparer: "", firstLog: 0, tables: new Map() };
  for (const record of journalRecords(path, manifest, { mayEndEarly: true })) {
    yield;
    if (record === undefined) continue;
    const read = new Fields(record);
    while (!read.atEnd) {
      const tag = read.varint();
      const change = changes[tag];
      if (change === undefined)
        throw new DatabaseDamaged(`${path} is damaged: it has changes of the unknown kind ${tag}`, path);
      change(read, draft);
    }
  }
  return { ...draft, tables: [...draft.tables.values()] };
}
