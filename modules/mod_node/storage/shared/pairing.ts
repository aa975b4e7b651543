/**
 * Verifies at startup that objects and database belong to the same store: the objects name the
 * database that lists them.
 */
import { failure } from "../../util/errors.ts";
import type { ObjectStore } from "./s3/objects.ts";
import { readWhole } from "./segments/load_index.ts";

/** Key of the object whose text is the name of the store. */
const KEY = "store";

/**
 * Returns the name of the store that these objects belong to; undefined when the objects do not
 * name one.
 */
export async function storeNamedBy(objects: ObjectStore): Promise<string | undefined> {
  const stored = await readWhole(objects, KEY);
  return stored && Buffer.from(stored).toString().trim();
}

export interface ListedStore {
  /** The unique name of the store. */
  readonly store: string;
  /** Whether no host has committed anything yet. */
  readonly isNew: boolean;
}

/**
 * Called before a host writes to a store. Two stores under one prefix would delete each other's
 * objects as orphans. In a store without its objects, every block would seem to be lost.
 *
 * @throws NodeError OBJECTS_OF_OTHER_STORE, OBJECTS_MISSING, STORE_UNAVAILABLE
 */
export async function requirePair(objects: ObjectStore, { store, isNew }: ListedStore): Promise<void> {
  const path = `${objects.name}${KEY}`;
  let stored = await readWhole(objects, KEY);
  if (stored === undefined && !isNew) throw failure("OBJECTS_MISSING", { path, store });
  if (stored === undefined) {
    if ((await objects.putNew(KEY, Buffer.from(store))) !== "different") return;
    // Another store created the object first.
    stored = await readWhole(objects, KEY);
  }
  const found = String(Buffer.from(stored ?? []));
  if (found.trim() !== store) throw failure("OBJECTS_OF_OTHER_STORE", { path, store, found: found.slice(0, 64) });
}
