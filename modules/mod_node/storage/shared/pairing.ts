/** The objects of a store name the database that lists them: a pair that does not belong together is found at the start. */
import { failure } from "../../util/errors.ts";
import type { ObjectStore } from "./s3/objects.ts";
import { readWhole } from "./segments/load_index.ts";

/** Of the object; its text is the name of the store. */
const KEY = "store";

/** The store whose objects these are, as its database names it; undefined where nobody has said. */
export async function storeNamedBy(objects: ObjectStore): Promise<string | undefined> {
  const stored = await readWhole(objects, KEY);
  return stored && Buffer.from(stored).toString().trim();
}

export interface ListedStore {
  /** Its name, which no other store has. */
  readonly store: string;
  /** No host has committed anything. */
  readonly isNew: boolean;
}

/**
 * Called before a host writes to a store. Two stores under one prefix would take each other's objects for orphans and delete
 * them, and without the objects of a store each of its blocks would seem to be lost.
 *
 * @throws NodeError OBJECTS_OF_OTHER_STORE, OBJECTS_MISSING, STORE_UNAVAILABLE
 */
export async function requirePair(objects: ObjectStore, { store, isNew }: ListedStore): Promise<void> {
  const place = `${objects.name}${KEY}`;
  let stored = await readWhole(objects, KEY);
  if (stored === undefined && !isNew) throw failure("OBJECTS_MISSING", { place, store });
  if (stored === undefined) {
    if ((await objects.putNew(KEY, Buffer.from(store))) !== "different") return;
    // Another store was faster.
    stored = await readWhole(objects, KEY);
  }
  const found = String(Buffer.from(stored ?? []));
  if (found.trim() !== store) throw failure("OBJECTS_OF_OTHER_STORE", { place, store, found: found.slice(0, 64) });
}
