/** What is done with snapshots that are there: all is read and checked; old ones go, with what nothing else uses. */
import { type Named, objectName, type Piece, snapshotPrefix } from "./format.ts";
import { lock } from "./lock.ts";
import { DamagedError, type Repository } from "./repository.ts";

export interface Verified {
  readonly snapshots: number;
  readonly objects: number;
  readonly bytes: number;
  /** What is missing or damaged, a sentence each, with the snapshots that it belongs to. */
  readonly faults: readonly string[];
}

export interface UpkeepOptions {
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((done: number, total: number) => void) | undefined;
}

/** Objects that are read at once. */
const MAX_CONCURRENT = 4;

export interface VerifyOptions extends UpkeepOptions {
  /**
   * Removes what is damaged, and snapshots that cannot be listed: the next backup writes again what the host still has, and
   * nothing keeps `prune` from its work.
   */
  readonly repair?: boolean;
}

/** Reads all that snapshots refer to, and checks it against its hashes. */
export async function verify(repository: Repository, options: VerifyOptions = {}): Promise<Verified> {
  if (options.repair !== true) return check(repository, options);
  const held = await lock(repository.backend);
  try {
    return await check(repository, options);
  } finally {
    await held.release();
  }
}

async function check(repository: Repository, { signal, progress, repair = false }: VerifyOptions): Promise<Verified> {
  const faults: string[] = [];
  const note = async (error: unknown, where: string, more: readonly string[] = []) => {
    if (!(error instanceof DamagedError)) throw error;
    faults.push(`${error.message} (${where})`);
    for (const name of repair ? [error.object, ...more] : []) await repository.backend.remove(name);
  };
  /** Object to the snapshots that need it. */
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
  /** Ids of the snapshots that went. */
  readonly snapshots: readonly string[];
  /** How many objects went. */
  readonly objects: number;
}

/**
 * Removes all but the latest snapshots, and what no snapshot uses, such as what an interrupted backup has left. When it
 * is interrupted itself, what remains is whole.
 */
export async function prune(repository: Repository, keep: number, { signal }: UpkeepOptions = {}): Promise<Pruned> {
  const { backend } = repository;
  const held = await lock(backend);
  try {
    const ids = await repository.snapshotIds();
    const going = ids.slice(0, Math.max(0, ids.length - keep));
    const used = new Set<string>();
    // Where one of those that stay cannot be read, nobody knows what it uses: nothing is removed then.
    for (const id of ids.slice(going.length)) {
      for (const object of await objectsOf(repository, await repository.snapshot(id), signal)) used.add(object);
    }
    const stopped = AbortSignal.any([held.lost, ...(signal ? [signal] : [])]);
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
    await held.release();
  }
}

/** All objects that a snapshot needs. */
async function objectsOf(repository: Repository, snapshot: Named, signal?: AbortSignal): Promise<Set<string>> {
  const objects = new Set<string>();
  const add = ([hash, , object = hash]: Piece) => objects.add(object);
  snapshot.list.forEach(add);
  for await (const { pieces } of repository.entries(snapshot, signal)) pieces.forEach(add);
  return objects;
}
