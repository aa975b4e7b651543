/**
 * Which tables and logs a Pebble consists of: its manifest, a journal of changes. Source: Pebble's
 * `internal/manifest`.
 */
import type { Steps } from "../../util/async/steps.ts";
import { DatabaseDamaged, Fields } from "../lsm/fields.ts";
import { journalRecords } from "./journal.ts";

export interface TableFile {
  readonly level: number;
  readonly number: number;
  /** First and last key, both included. */
  readonly smallest: Buffer;
  readonly largest: Buffer;
}

export interface Manifest {
  /** The order of keys by its name. */
  readonly comparer: string;
  /** The number of the first log that is needed; what was in earlier ones is in tables. */
  readonly firstLog: number;
  readonly tables: readonly TableFile[];
}

interface Draft {
  comparer: string;
  firstLog: number;
  /** By level and number. */
  readonly tables: Map<string, TableFile>;
}

type ReadChange = (read: Fields, draft: Draft) => void;

/** What this node does not read, and Kubo does not write. @throws DatabaseDamaged */
const unknown = (what: string) => () => {
  throw new DatabaseDamaged(`it has ${what}, which Kubo does not write`);
};

const skipNumber: ReadChange = (read) => void read.varint();

/** What a change tells, by the number before it. */
const changes: Readonly<Record<number, ReadChange>> = {
  1(read, draft) {
    draft.comparer = Buffer.from(read.text()).toString();
  },
  2(read, draft) {
    draft.firstLog = read.varint();
  },
  // The next file, the last change.
  3: skipNumber,
  4: skipNumber,
  // A level, and the key at which its next compaction begins.
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
  /** Numbers of changes between which its own are. */
  readonly numbers: number;
  readonly hasTags: boolean;
}

/** The end of the tags; those from 64 on change what the table means. */
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
    if (tag >= firstTagThatCounts) unknown(`tables of a kind of their own (${tag})`)();
    read.text();
  }
  draft.tables.set(`${level}/${number}`, { level, number, smallest, largest });
}

/** Keys in tables have the number of their change and its kind behind them. */
const trailerLength = 8;

const userKey = (key: Uint8Array): Buffer => Buffer.from(key.subarray(0, Math.max(0, key.length - trailerLength)));

/** `path` is for errors. @throws DatabaseDamaged */
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
        throw new DatabaseDamaged(`${path} is damaged: nothing is known of changes ${tag}`, path);
      change(read, draft);
    }
  }
  return { ...draft, tables: [...draft.tables.values()] };
}
