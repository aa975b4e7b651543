/**
 * Imports the pins and MFS of go-ipfs or Kubo from the database of its repo, which stays unchanged.
 * After the first import, the metadata of this node is authoritative. When the other program has
 * used the repo again, only the changes that it has made since then are applied. To tell its
 * changes from those of this node, the import stores a copy of everything that it has imported.
 */
import type { CID } from "multiformats/cid";
import { Journal, rootKey } from "../../content/mfs/journal.ts";
import { pinPrefix } from "../../content/pins/pins.ts";
import { unixfsNode } from "../../content/unixfs/node.ts";
import { CidSet } from "../../formats/cid/set.ts";
import { castCid, parseCid } from "../../formats/cid/text.ts";
import { cumulativeSize } from "../../formats/dag_pb/dag_pb.ts";
import type { MetadataStore, MetadataWriter } from "../../storage/metadata/store.ts";
import type { ForeignDatabase } from "../../storage/repo/datastore.ts";
import { batches } from "../../util/async/batches.ts";
import { type FailureCode, failure, NodeError } from "../../util/errors.ts";
import { seededKey } from "../seed.ts";
import { databases, fingerprint, isOpen, type KeyValues } from "./databases.ts";
import { type GoIpfsRecord, nameKey, recordsIn } from "./records.ts";

export interface ImportOptions {
  readonly from: ForeignDatabase;
  readonly metadata: MetadataStore;
  /** Reads a block that is on this machine. */
  readonly find: (cid: CID) => Promise<Uint8Array | undefined>;
  /** Folder for temporary files. It need not exist, and is removed at the end. */
  readonly scratch: string;
  readonly onNotice: (sentence: string) => void;
  /** Called with a changed database before anything else is read from it. */
  readonly onChanged?: ((database: KeyValues) => Promise<void>) | undefined;
  /**
   * Called when everything is in the metadata. If it fails, the next start imports the same again.
   */
  readonly onImported?: (() => Promise<void>) | undefined;
  /** Signal of both steps. */
  readonly signal?: AbortSignal | undefined;
}

/** Prefix of the copies of imported entries. */
const importedPrefix = "adopted/";
/** Key of the database's fingerprint at the last import. */
const stateKey = "node/adopted";
/**
 * Prefixes of the keys that record what was imported. They are useless in a store without that
 * database.
 */
export const importStateKeys = [importedPrefix, stateKey];

/** Versions of the programs that can open what this node opens. */
const versions = { "go-ipfs": "0.9", Kubo: "0.43" } as const;

/** Failures of what the database contains; all others are failures of this node. */
const ofContent: ReadonlySet<FailureCode> = new Set<FailureCode>([
  "BLOCK_NOT_STORABLE",
  "CID_NOT_PINNABLE",
  "DATABASE_RECORD_INVALID",
  "METADATA_KEY_INVALID",
]);

/** Records per transaction. */
const MAX_BATCH = 4096;

const same = (one: Uint8Array | undefined, other: Uint8Array | undefined) =>
  one === undefined || other === undefined ? one === other : Buffer.compare(one, other) === 0;

/**
 * Imports the changes since the last import.
 * @throws NodeError DATABASE_IN_USE while another process has the database open; DATABASE_DAMAGED
 * if a part cannot be read, without any change of the metadata
 */
export async function importMetadata(options: ImportOptions): Promise<void> {
  const { from, metadata, scratch, onNotice, onChanged, onImported, signal } = options;
  const { engine, path, program } = from;
  if (await isOpen(path)) throw failure("DATABASE_IN_USE", { path });
  const state = await fingerprint(engine, path);
  const before = Buffer.from((await metadata.get(stateKey)) ?? []).toString();
  if (state === undefined) {
    if (before !== "")
      onNotice(`the database of ${program} is missing from ${path}: pins and files that were imported from it remain`);
    return;
  }
  if (state === before) return;
  const use = async (database: KeyValues) => {
    await onChanged?.(database);
    return follow(database, options);
  };
  const changes = await databases[engine].read(path, scratch, use).catch((error: Error) => {
    if ((error instanceof NodeError && !ofContent.has(error.code)) || signal?.aborted === true) throw error;
    throw failure(
      "DATABASE_DAMAGED",
      { path, program, remedy: `${program} ${versions[program]}`, reason: error.message },
      error,
    );
  });
  await onImported?.();
  await metadata.transaction((writer) => {
    writer.put(stateKey, Buffer.from(state));
    writer.put(seededKey, new Uint8Array([1]));
  });
  if (before === "") onNotice(`pins and files of ${program} were imported from ${path}`);
  else if (changes > 0) onNotice(`${program} has used the repo: ${changes} of its pins and files were imported`);
}

/**
 * Applies the changes since the last import and returns their number. It can run again after an
 * interruption, because one transaction makes each change and records it.
 */
async function follow(database: KeyValues, options: ImportOptions): Promise<number> {
  const { metadata } = options;
  // Reads everything before it changes anything.
  const known = new Known();
  for await (const record of recordsIn(database)) known.add(record);
  const takesRoot = await mergeRoots(known.root, options);
  let changes = 0;
  for await (const page of batches(recordsIn(database), MAX_BATCH)) {
    changes += await metadata.transaction((writer) => applyPage(writer, page, takesRoot));
  }
  const gone = known.missing(metadata.range({ prefix: importedPrefix }));
  for await (const page of batches(gone, MAX_BATCH)) {
    changes += await metadata.transaction((writer) => removeGone(writer, page));
  }
  return changes;
}

/** A compact set of all keys of the database. */
class Known {
  readonly #cids = new Map<string, CidSet>();
  readonly #others = new Set<string>();
  root: Uint8Array | undefined;

  add({ key, value, cid }: GoIpfsRecord): void {
    if (key === rootKey) this.root = value;
    if (cid === undefined) this.#others.add(key);
    else this.#cidsUnder(key).add(cid);
  }

  /** Yields the imported keys that the database no longer has. */
  async *missing(adopted: AsyncIterable<readonly [key: string, value: Uint8Array]>): AsyncGenerator<string> {
    for await (const [key] of adopted) {
      const taken = key.slice(importedPrefix.length);
      const cids = this.#cids.get(prefixOf(taken));
      const isThere = this.#others.has(taken) || cids?.has(parseCid(taken.slice(prefixOf(taken).length)));
      if (!isThere) yield taken;
    }
  }

  #cidsUnder(key: string): CidSet {
    const cids = this.#cids.get(prefixOf(key)) ?? new CidSet();
    this.#cids.set(prefixOf(key), cids);
    return cids;
  }
}

/** The key without its last segment, such as a CID. */
const prefixOf = (key: string): string => key.slice(0, key.lastIndexOf("/") + 1);

function removeGone(writer: MetadataWriter, keys: readonly string[]): number {
  for (const key of keys) {
    writer.delete(importedPrefix + key);
    if (key !== rootKey) writer.delete(key);
  }
  return keys.length;
}

function applyPage(writer: MetadataWriter, records: readonly GoIpfsRecord[], takesRoot: boolean): number {
  let changes = 0;
  for (const record of records) {
    const { key, value } = record;
    const base = writer.get(importedPrefix + key);
    if (same(base, value)) continue;
    writer.put(importedPrefix + key, value);
    if (key !== rootKey) put(writer, record, base);
    else if (takesRoot) writer.put(key, value);
    changes += 1;
  }
  return changes;
}

function put(writer: MetadataWriter, { key, value }: GoIpfsRecord, base: Uint8Array | undefined): void {
  // A name that this node has published since then has the later record, and stays.
  if (key.startsWith(nameKey) && !same(writer.get(key), base)) return;
  const direct = pinPrefix("direct");
  const recursive = pinPrefix("recursive");
  // A CID has one pin mode, and recursive takes precedence.
  if (key.startsWith(direct) && writer.has(recursive + key.slice(direct.length))) return;
  if (key.startsWith(recursive)) writer.delete(direct + key.slice(recursive.length));
  writer.put(key, value);
}

/**
 * Whether the other program's MFS root replaces the root of this node. It does if only that program
 * has changed it. If both have, the root of this node stays and gets the other one as a directory.
 */
async function mergeRoots(theirs: Uint8Array | undefined, options: ImportOptions): Promise<boolean> {
  const { metadata, find, onNotice, from } = options;
  const [base, ours] = await Promise.all([metadata.get(importedPrefix + rootKey), metadata.get(rootKey)]);
  if (theirs === undefined || same(theirs, base) || same(theirs, ours)) return false;
  const journal = new Journal(metadata);
  if ((await journal.load()).changes.length === 0 && same(ours, base)) return true;
  const cid = castCid(theirs);
  const name = `${from.program.toLowerCase()}-${cid}`;
  const bytes = await find(cid);
  const node = bytes && unixfsNode(cid, bytes);
  await journal.add([{ at: [], put: { name, cid, size: node === undefined ? 0 : cumulativeSize(node) } }]);
  onNotice(`both ${from.program} and this node have changed their files: those of ${from.program} are in /${name}`);
  return false;
}
