/**
 * Stores MFS in the metadata: a root, and a journal of the changes since. The cost of a change does
 * not depend on the size of the directories above it. From time to time the root is stored again,
 * and the changes that it contains leave the journal. If several hosts share the metadata, the
 * order of the journal is the order of the changes of all hosts.
 */
import { CID } from "multiformats/cid";
import { hashCoded, hashUnavailable } from "../../formats/cid/hashes.ts";
import { parseCid } from "../../formats/cid/text.ts";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { ModeAndTime } from "../../formats/unixfs/format.ts";
import { readEntry, readJsonEntry } from "../../storage/metadata/read_entry.ts";
import type { KeyRange, MetadataStore, MetadataWriter } from "../../storage/metadata/store.ts";
import type { CidSettings } from "../unixfs/build.ts";

const folder = "files/";
/** Key of the root. The value is the bytes of its CID. */
export const rootKey = `${folder}root`;
/**
 * Key of two numbers: of the first change that is not part of the root, and of the next change.
 * Numbers continue when the root is stored, so that other hosts miss no change. Versions without
 * this key begin again with 0 then, and may meet this key. That does no harm, because numbers only
 * have to grow.
 */
const numbersKey = `${folder}numbers`;

/**
 * A change in one directory. An entry was put or removed; or the directory got new settings, mode
 * and time, or another form: sharded with that many slots, or plain with 0.
 */
export type NamespaceChange = { readonly at: readonly string[] } & (
  | { readonly put: PbLink }
  | { readonly remove: string }
  | { readonly settings: CidSettings }
  | { readonly facts: ModeAndTime }
  | { readonly fanout: number }
);

/** The changes, in the order in which they were made. */
const prefix = `${folder}change/`;
const digits = 16;

type ChangeRecord = { readonly at: readonly string[] } & (
  | { readonly put: readonly [name: string, cid: string, size: number] }
  | { readonly remove: string }
  | { readonly settings: readonly [version: 0 | 1, hash: number] }
  | { readonly facts: ModeAndTime }
  | { readonly fanout: number }
);

function recordOf(change: NamespaceChange): ChangeRecord {
  const { at } = change;
  if ("put" in change) return { at, put: [change.put.name, change.put.cid.toString(), change.put.size] };
  if (!("settings" in change)) return change;
  return { at, settings: [change.settings.version, change.settings.hash.code] };
}

function changeOf(record: ChangeRecord): NamespaceChange {
  const { at } = record;
  if (!Array.isArray(at)) throw new TypeError("it is no change of a directory");
  if ("put" in record) return { at, put: { name: record.put[0], cid: parseCid(record.put[1]), size: record.put[2] } };
  if (!("settings" in record)) return record;
  const [version, code] = record.settings;
  const hash = hashCoded(code);
  if (hash === undefined) throw hashUnavailable(code);
  return { at, settings: { version, hash } };
}

/** The root and the changes of the journal at one moment. */
export interface MfsState {
  /** Undefined in a repo whose MFS was never changed. */
  readonly root: CID | undefined;
  /** Changes since the root was stored, in order. */
  readonly changes: readonly NamespaceChange[];
}

/** A call that was run on the tree. */
export interface TracedCall {
  readonly changes: readonly NamespaceChange[];
  /** Whether one of these earlier changes could have led to another result. */
  dependsOn(changes: readonly NamespaceChange[]): boolean;
}

/** The result of `append`. */
export interface Appended {
  /** Changes that other hosts added before, and that must be applied to the tree. */
  readonly others: readonly NamespaceChange[];
  /** For each call, whether it must run again because its changes were not added. */
  readonly overtaken: readonly boolean[];
}

interface Numbers {
  /** Changes with lower numbers are part of the root. */
  readonly contained: number;
  /** Greater than the numbers of all changes. */
  readonly next: number;
}

const encodeNumbers = ({ contained, next }: Numbers): Uint8Array => Buffer.from(JSON.stringify([contained, next]));

const decodeNumbers = (bytes: Uint8Array): Numbers =>
  readJsonEntry(numbersKey, bytes, (json) => {
    const [contained, next] = json as [number, number];
    if (!Number.isSafeInteger(contained) || !Number.isSafeInteger(next)) throw new TypeError("it is no two numbers");
    return { contained, next };
  });

const decodeRoot = (bytes: Uint8Array): CID => readEntry(rootKey, bytes, (value) => CID.decode(value));

type Entries = Iterable<readonly [key: string, value: Uint8Array]>;

/** The entries of a listing of the folder. */
class ListedState {
  readonly changes: NamespaceChange[] = [];
  root: CID | undefined;
  numbers: Numbers = { contained: 0, next: 0 };

  add(key: string, value: Uint8Array): void {
    if (key === rootKey) this.root = decodeRoot(value);
    else if (key === numbersKey) this.#count(decodeNumbers(value));
    else if (key.startsWith(prefix)) {
      this.changes.push(readJsonEntry(key, value, (json) => changeOf(json as ChangeRecord)));
      this.#count({ contained: 0, next: Number(key.slice(prefix.length)) + 1 });
    }
  }

  #count({ contained, next }: Numbers): void {
    this.numbers = {
      contained: Math.max(contained, this.numbers.contained),
      next: Math.max(next, contained, this.numbers.next),
    };
  }

  static of(entries: Entries): ListedState {
    const listed = new ListedState();
    for (const [key, value] of entries) listed.add(key, value);
    return listed;
  }
}

export class Journal {
  readonly #metadata: MetadataStore;
  /** Number of the next change. All changes with lower numbers were read or added here. */
  #next = 0;
  #length = 0;

  constructor(metadata: MetadataStore) {
    this.#metadata = metadata;
  }

  /** Number of changes in the journal, as far as it was read. */
  get length(): number {
    return this.#length;
  }

  /** Undefined in a repo whose MFS was never changed. */
  async root(): Promise<CID | undefined> {
    const bytes = await this.#metadata.get(rootKey);
    return bytes && decodeRoot(bytes);
  }

  /** Whether there are changes since the root was stored. */
  async isEmpty(): Promise<boolean> {
    for await (const _ of this.#metadata.range({ prefix, limit: 1 })) return false;
    return true;
  }

  /** Reads the whole state. */
  state(): Promise<MfsState> {
    return this.#list({ prefix: folder });
  }

  /** Reads the whole state and continues from it. To be called before changes are added. */
  async load(): Promise<MfsState> {
    const listed = await this.#list({ prefix: folder });
    this.#next = listed.numbers.next;
    this.#length = listed.changes.length;
    return listed;
  }

  /**
   * Adds changes in a store that only this host uses. All of them are durable when it resolves,
   * none when it rejects.
   */
  async add(changes: readonly NamespaceChange[]): Promise<void> {
    const first = this.#next;
    await this.#metadata.transaction((writer) => putAll(writer, first, changes));
    this.#next = first + changes.length;
    this.#length += changes.length;
  }

  /**
   * Returns the changes that other hosts added since the last read or `append`. Returns undefined
   * if a stored root already contains some of them: then the whole state must be read again.
   */
  async since(): Promise<readonly NamespaceChange[] | undefined> {
    const known = await this.#metadata.get(numbersKey);
    if (known === undefined || decodeNumbers(known).next === this.#next) return [];
    const { changes, numbers } = await this.#list(unseen(this.#next));
    if (numbers.contained > this.#next) return undefined;
    this.#next = numbers.next;
    this.#length += changes.length;
    return changes;
  }

  /**
   * Adds the changes of calls in one transaction, after those of other hosts. Leaves out each call
   * that depends on changes that other hosts added meanwhile, or on a call that was left out.
   */
  async append(calls: readonly TracedCall[]): Promise<Appended> {
    const first = this.#next;
    const appended = await this.#metadata.transaction((writer) => {
      const { changes: others, numbers } = ListedState.of(writer.range(unseen(first)));
      if (numbers.contained > first) return undefined;
      const before = [...others];
      let at = Math.max(numbers.next, first);
      const overtaken = calls.map((call) => {
        const isOvertaken = call.dependsOn(before);
        if (isOvertaken) before.push(...call.changes);
        else at = putAll(writer, at, call.changes);
        return isOvertaken;
      });
      if (at > numbers.next) writer.put(numbersKey, encodeNumbers({ ...numbers, next: at }));
      return { others, overtaken, next: at };
    });
    if (appended === undefined) return { others: [], overtaken: calls.map(() => true) };
    this.#length += appended.next - this.#next;
    this.#next = appended.next;
    return appended;
  }

  /**
   * Stores a root that contains all changes that were read or added here. Later changes stay in the
   * journal.
   */
  async keep(root: CID): Promise<void> {
    const next = this.#next;
    await this.#metadata.transaction((writer) => {
      const stored = writer.get(numbersKey);
      const numbers = stored === undefined ? { contained: 0, next: 0 } : decodeNumbers(stored);
      // Another host has stored a later root.
      if (numbers.contained > next) return;
      writer.put(rootKey, root.bytes);
      writer.put(numbersKey, encodeNumbers({ contained: next, next: Math.max(numbers.next, next) }));
      for (const [key] of [...writer.range({ prefix })]) if (key < keyOf(next)) writer.delete(key);
    });
    this.#length = 0;
  }

  /**
   * Replaces the whole state by a root, if `isMeant` returns true within the same transaction.
   * Other hosts read the state again. Returns whether it was replaced.
   */
  async replace(root: CID, isMeant: (now: MfsState) => boolean = () => true): Promise<boolean> {
    return this.#metadata.transaction((writer) => {
      const listed = ListedState.of(writer.range({ prefix: folder }));
      if (!isMeant(listed)) return false;
      const next = listed.numbers.next + 1;
      writer.put(rootKey, root.bytes);
      writer.put(numbersKey, encodeNumbers({ contained: next, next }));
      for (const [key] of [...writer.range({ prefix })]) writer.delete(key);
      return true;
    });
  }

  async #list(range: KeyRange): Promise<ListedState> {
    const listed = new ListedState();
    for await (const [key, value] of this.#metadata.range(range)) listed.add(key, value);
    return listed;
  }
}

const keyOf = (at: number): string => prefix + String(at).padStart(digits, "0");

/**
 * The range of the changes from a number on, with the keys that follow them in the folder. One
 * listing is consistent.
 */
const unseen = (next: number): KeyRange => ({ prefix: folder, ...(next > 0 && { after: keyOf(next - 1) }) });

/** Returns the number after the last change. */
function putAll(writer: MetadataWriter, first: number, changes: readonly NamespaceChange[]): number {
  for (const [at, change] of changes.entries())
    writer.put(keyOf(first + at), Buffer.from(JSON.stringify(recordOf(change))));
  return first + changes.length;
}
