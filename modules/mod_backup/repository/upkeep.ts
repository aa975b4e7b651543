/**
 * Maintains existing snapshots: verifies all data, and removes old snapshots together with objects
 * that nothing else uses.
 */
import { type Named, objectName, type Piece, snapshotPrefix } from "./format.ts";
import { lock } from "./lock.ts";
import { DamagedError, type Repository } from "./repository.ts";

export interface Verified {
  readonly snapshots: number;
  readonly objects: number;
  readonly bytes: number;
  /** One sentence for each missing or damaged object, with the snapshots that need it. */
  readonly faults: readonly string[];
}

export interface UpkeepOptions {
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number) => void) | undefined;
}

/** Number of objects that are read at a time. */
const MAX_CONCURRENT = 4;

export interface VerifyOptions extends UpkeepOptions {
  /**
   * Removes damaged objects, and snapshots that cannot be listed. The next backup writes again what
   * the host still has, and `prune` works again.
   */
  readonly repair?: boolean;
}

/** Reads everything that snapshots refer to, and compares it with its hashes. */
export async function verify(repository: Repository, options: VerifyOptions = {}): Promise<Verified> {
  if (options.repair !== true) return check(repository, options);
  const writerLock = await lock(repository.backend);
  try {
    return await check(repository, options);
  } finally {
    await writerLock.release();
  }
}

async function check(repository: Repository, { signal, progress, repair = false }: VerifyOptions): Promise<Verified> {
  const faults: string[] = [];
  const note = async (error: unknown, where: string, more: readonly string[] = []) => {
    if (!(error instanceof DamagedError)) throw error;
    faults.push(`${error.message} (${where})`);
    for (const name of repair ? [error.object, ...more] : []) await repository.backend.remove(name);
  };
  /** Maps each object to the snapshots that need it. */
  const needed = new Map<string, string[]>();
  const ids = await repository.snapshotIds();
  for (const id of ids) {
    try {
      for (const object of await objectsOf(repository, await repository.snapshot(id), signal)) {
        needed.set(object, [...(needed.get(object) ?? []), id]);
      }
    } catch (error) {
      await note(error, `snapshot ${id}`, [snapshotPrefix + id]);
    }
  }
  let bytes = 0;
  let done = 0;
  const queue = needed.entries();
  const work = async () => {
    for (const [object, users] of queue) {
      signal?.throwIfAborted();
      try {
        const { length } = await repository.readObject(object, signal);
        bytes += length;
      } catch (error) {
        await note(error, `snapshot ${users.join(", ")}`);
      }
      done += 1;
      progress?.(done, needed.size);
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, work));
  return { snapshots: ids.length, objects: needed.size, bytes, faults };
}

export interface Pruned {
  /** Ids of the removed snapshots. */
  readonly snapshots: readonly string[];
  /** Number of removed objects. */
  readonly objects: number;
}

/**
 * Removes all but the latest snapshots, and objects that no snapshot uses, such as remains of an
 * interrupted backup. An interruption leaves the remaining snapshots intact.
 */
export async function prune(repository: Repository, keep: number, { signal }: UpkeepOptions = {}): Promise<Pruned> {
  const { backend } = repository;
  const writerLock = await lock(backend);
  try {
    const ids = await repository.snapshotIds();
    const going = ids.slice(0, Math.max(0, ids.length - keep));
    const used = new Set<string>();
    // If a remaining snapshot cannot be read, its objects are unknown. This throws before anything
    // is removed.
    for (const id of ids.slice(going.length)) {
      for (const object of await objectsOf(repository, await repository.snapshot(id), signal)) used.add(object);
    }
    const stopped = AbortSignal.any([writerLock.lost, ...(signal ? [signal] : [])]);
    for (const id of going) await backend.remove(snapshotPrefix + id);
    let objects = 0;
    for (const hash of await repository.objects(stopped)) {
      stopped.throwIfAborted();
      if (used.has(hash)) continue;
      await backend.remove(objectName(hash));
      objects += 1;
    }
    await backend.tidy();
    return { snapshots: going, objects };
  } finally {
    await writerLock.release();
  }
}

/** Returns all objects that a snapshot needs. */
async function objectsOf(repository: Repository, snapshot: Named, signal?: AbortSignal): Promise<Set<string>> {
  const objects = new Set<string>();
  const add = ([hash, , object = hash]: Piece) => objects.add(object);
  snapshot.list.forEach(add);
  for await (const { pieces } of repository.entries(snapshot, signal)) pieces.forEach(add);
  return objects;
}
