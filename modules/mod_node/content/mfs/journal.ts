/**
 * How MFS is kept in the metadata: a root, and a journal of the changes since. The cost of a change does not depend on
 * the size of the directories above it. From time to time the root is stored anew and the journal is emptied.
 */
import { CID } from "multiformats/cid";
import { hashCoded, hashUnavailable } from "../../formats/cid/hashes.ts";
import { parseCid } from "../../formats/cid/text.ts";
import type { PbLink } from "../../formats/dag_pb/dag_pb.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { CidSettings } from "../unixfs/build.ts";

/** Key of the root; the value is the bytes of its CID. */
export const rootKey = "files/root";

/** A change in one directory: an entry was put or removed, or new settings were given. */
export type Change = { readonly at: readonly string[] } & (
  | { readonly put: PbLink }
  | { readonly remove: string }
  | { readonly settings: CidSettings }
);

/** Changes in the order in which they were made. */
const prefix = "files/change/";
const digits = 16;

type Record = { readonly at: readonly string[] } & (
  | { readonly put: readonly [name: string, cid: string, size: number] }
  | { readonly remove: string }
  | { readonly settings: readonly [version: 0 | 1, hash: number] }
);

function recordOf(change: Change): Record {
  const { at } = change;
  if ("put" in change) return { at, put: [change.put.name, change.put.cid.toString(), change.put.size] };
  if ("remove" in change) return { at, remove: change.remove };
  return { at, settings: [change.settings.version, change.settings.hash.code] };
}

function changeOf(record: Record): Change {
  const { at } = record;
  if ("put" in record) return { at, put: { name: record.put[0], cid: parseCid(record.put[1]), size: record.put[2] } };
  if ("remove" in record) return { at, remove: record.remove };
  const [version, code] = record.settings;
  const hash = hashCoded(code);
  if (hash === undefined) throw hashUnavailable(code);
  return { at, settings: { version, hash } };
}

export class Journal {
  readonly #metadata: MetadataStore;
  #next = 0;

  constructor(metadata: MetadataStore) {
    this.#metadata = metadata;
  }

  /** Number of changes in the journal. */
  get length(): number {
    return this.#next;
  }

  /** Undefined in a repo whose MFS was never changed. */
  async root(): Promise<CID | undefined> {
    const kept = await this.#metadata.get(rootKey);
    return kept && CID.decode(kept);
  }

  /** Whether there are changes since the root was stored. */
  async isEmpty(): Promise<boolean> {
    for await (const _ of this.#metadata.range({ prefix, limit: 1 })) return false;
    return true;
  }

  /** The changes since the root was stored. To be read once, before anything is added. */
  async changes(): Promise<Change[]> {
    const found: Change[] = [];
    for await (const [key, value] of this.#metadata.range({ prefix })) {
      found.push(changeOf(JSON.parse(Buffer.from(value).toString())));
      this.#next = Number(key.slice(prefix.length)) + 1;
    }
    return found;
  }

  /** All of them are durable when it resolves, none when it rejects. */
  async add(changes: readonly Change[]): Promise<void> {
    const first = this.#next;
    const values = changes.map((change) => Buffer.from(JSON.stringify(recordOf(change))));
    await this.#metadata.transaction((writer) => {
      for (const [at, value] of values.entries()) writer.put(keyOf(first + at), value);
    });
    this.#next = first + changes.length;
  }

  /** Stores a root that contains all changes. */
  async keep(root: CID): Promise<void> {
    await this.#metadata.transaction((writer) => {
      writer.put(rootKey, root.bytes);
      for (const [key] of [...writer.range({ prefix })]) writer.delete(key);
    });
    this.#next = 0;
  }
}

const keyOf = (at: number): string => prefix + String(at).padStart(digits, "0");
