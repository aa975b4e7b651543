/**
 * Compares the log with the object store, for an operator and after each test that damages a store.
 */
import { keyOf, segmentHeader } from "../../blockstore/segments/format.ts";
import { isIntact, SectionReader } from "../../blockstore/segments/section_reader.ts";
import type { SharedLog } from "../log.ts";
import type { ObjectStore } from "../s3/objects.ts";
import type { BlockIndex, SegmentRow } from "./block_index.ts";
import { decodeBlockList } from "./block_lists.ts";
import { decodeIndex, type IndexedBlock, isIndexInLog } from "./index_file.ts";
import { readWhole } from "./load_index.ts";
import { carKey, idOfKey, indexKey, isListKey, sessionOfKey } from "./names.ts";
import { storedFile } from "./stored_segments.ts";

export interface VerifyDeps {
  readonly log: SharedLog;
  readonly objects: ObjectStore;
  readonly index: BlockIndex;
  /** Resolves when everything that any host has committed is in the index. */
  readonly catchUp: () => Promise<void>;
}

export interface SegmentFault {
  /** Key of the object. */
  readonly object: string;
  readonly fault: string;
}

export interface VerifyOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether to read every block and compare it with its hash. Otherwise, checks only that objects
   * exist with the right length and a valid index.
   */
  readonly read?: boolean | undefined;
}

/**
 * Checks every segment that the store had at the beginning, and every list of blocks that the log
 * names.
 * @throws NodeError STORE_UNAVAILABLE
 */
export async function* verifySegments(
  deps: VerifyDeps,
  { signal, read = true }: VerifyOptions = {},
): AsyncGenerator<SegmentFault> {
  await deps.catchUp();
  for (const [number, row] of [...deps.index.rows]) {
    signal?.throwIfAborted();
    const faults = await faultsOf(deps.objects, row, read);
    if (faults.length === 0) continue;
    // The segment may have been replaced and deleted in the meantime.
    await deps.catchUp();
    if (deps.index.rows.get(number)?.id === row.id) yield* faults;
  }
  yield* faultsOfLists(deps, signal);
}

async function* faultsOfLists(
  { log, objects }: VerifyDeps,
  signal: AbortSignal | undefined,
): AsyncGenerator<SegmentFault> {
  for (const object of await log.lists()) {
    signal?.throwIfAborted();
    const stored = await readWhole(objects, object);
    if (stored !== undefined && decodeBlockList(stored) !== undefined) continue;
    // The entry that named the list may have been deleted in the meantime.
    if ((await log.lists()).includes(object)) yield { object, fault: stored ? "is damaged" : "is missing" };
  }
}

async function faultsOf(objects: ObjectStore, row: SegmentRow, read: boolean): Promise<SegmentFault[]> {
  const car = carKey(row.id);
  const facts = await objects.head(car);
  if (facts === undefined) return [{ object: car, fault: "is missing" }];
  if (facts.bytes !== row.bytes) return [{ object: car, fault: `has ${facts.bytes} bytes, not ${row.bytes}` }];
  if (isIndexInLog(row.blocks)) return read ? faultsOfCar(objects, row, undefined) : [];
  const key = indexKey(row.id);
  const stored = await readWhole(objects, key);
  const index = stored && decodeIndex(stored, row);
  const faults: SegmentFault[] = [];
  if (stored === undefined) faults.push({ object: key, fault: "is missing" });
  else if (index === undefined) faults.push({ object: key, fault: "is damaged" });
  return read ? [...faults, ...(await faultsOfCar(objects, row, index))] : faults;
}

const textOf = ({ multihash, form, offset, length }: IndexedBlock): string =>
  `${keyOf(multihash)} ${form} ${offset} ${length}`;

async function faultsOfCar(
  objects: ObjectStore,
  row: SegmentRow,
  index: readonly IndexedBlock[] | undefined,
): Promise<SegmentFault[]> {
  const object = carKey(row.id);
  const faults: SegmentFault[] = [];
  const indexed = new Set(index?.map(textOf));
  const reader = new SectionReader(storedFile(objects, row), segmentHeader.length, row.bytes, { withData: true });
  for (let found = await reader.next(); found !== undefined; found = await reader.next()) {
    if (!(await isIntact(found))) faults.push({ object, fault: `is damaged at byte ${found.offset}` });
    if (index !== undefined && !indexed.delete(textOf(found)))
      faults.push({ object: indexKey(row.id), fault: `lacks the block at byte ${found.offset}` });
  }
  if (reader.damage !== undefined) faults.push({ object, fault: `is damaged at byte ${reader.at}: ${reader.damage}` });
  if (indexed.size > 0)
    faults.push({ object: indexKey(row.id), fault: `lists ${indexed.size} blocks that do not exist` });
  return faults;
}

/**
 * Returns the keys of objects that no host lists or will list. They come from sessions that ended
 * between an upload and its commit.
 */
export async function findOrphans(deps: VerifyDeps, signal?: AbortSignal): Promise<readonly string[]> {
  const { log, objects, index } = deps;
  const found: string[] = [];
  for await (const page of objects.list("", { signal })) {
    for (const { key } of page) if (idOfKey(key) !== undefined || isListKey(key)) found.push(key);
  }
  // A session that has ended by now commits nothing more, and `catchUp` sees everything that it has
  // committed.
  const alive = new Set(await log.sessions());
  await deps.catchUp();
  const named = new Set(
    [...index.rows.values()].map(({ id }) => id).concat(await log.lists(), await log.deletableObjects(0)),
  );
  return found.filter(
    (key) => !named.has(isListKey(key) ? key : `${idOfKey(key)}`) && !alive.has(sessionOfKey(key) ?? 0),
  );
}

/**
 * Deletes orphans and aborts incomplete uploads of sessions that have ended. Returns the keys of
 * orphans.
 * @throws NodeError STORE_UNAVAILABLE
 */
export async function deleteOrphans(deps: VerifyDeps, signal?: AbortSignal): Promise<readonly string[]> {
  const alive = new Set(await deps.log.sessions());
  const newest = Math.max(...alive);
  // A session that began after the query is newer than all of these.
  const isOver = (session: number) => session < newest && !alive.has(session);
  await deps.objects.abandonUploads((key) => isOver(sessionOfKey(key) ?? newest), { signal });
  const keys = await findOrphans(deps, signal);
  if (keys.length > 0) await deps.objects.delete(keys, { signal });
  return keys;
}
