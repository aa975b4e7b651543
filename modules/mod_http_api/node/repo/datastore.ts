/** Where a repo keeps its blocks and metadata: `Datastore.Spec`, and what of it decides whether a repo fits. */
import { NodeError } from "../errors.ts";
import { isObject, type JsonObject } from "./json.ts";

/** Engines and what of their settings belongs to the data. */
const engines: ReadonlyMap<string, readonly string[]> = new Map([
  ["segments", ["path", "type"]],
  ["lmdb", ["path", "type"]],
  ["flatfs", ["path", "shardFunc", "type"]],
  ["levelds", ["path", "type"]],
  ["badgerds", ["path", "type"]],
]);

/** The content of the file `datastore_spec`. @throws NodeError with the reference's text */
export function diskSpec(spec: JsonObject): string {
  return JSON.stringify(essence(spec));
}

function essence(spec: JsonObject): JsonObject {
  const { type, mounts, child } = spec;
  if (typeof type !== "string") throw new NodeError("'type' field missing or not a string");
  if (type === "measure" || type === "log") {
    if (!isObject(child)) throw new NodeError("'child' field is missing or not a map");
    return essence(child);
  }
  if (type === "mount") {
    if (!Array.isArray(mounts)) throw new NodeError("'mounts' field is missing or not an array");
    return { mounts: mounts.map(mounted).sort(deepestFirst), type };
  }
  const kept = engines.get(type);
  if (kept === undefined) throw new NodeError(`unknown datastore type: ${type}`);
  return Object.fromEntries(kept.map((key) => [key, spec[key]]));
}

interface Mounted extends JsonObject {
  readonly mountpoint: string;
}

const deepestFirst = (one: Mounted, other: Mounted) => (one.mountpoint < other.mountpoint ? 1 : -1);

function mounted(mount: unknown): Mounted {
  if (!isObject(mount)) throw new NodeError("expected map for mountpoint");
  const { mountpoint } = mount;
  if (typeof mountpoint !== "string") throw new NodeError("no 'mountpoint' on mount");
  const entries = Object.entries({ ...essence(mount), mountpoint });
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1))) as unknown as Mounted;
}

/** Folders of the two stores, relative to the repo. */
export interface StoreFolders {
  readonly blocks: string;
  readonly metadata: string;
}

/** @throws NodeError for stores that this node cannot open */
export function storeFolders(spec: JsonObject): StoreFolders {
  const { mounts } = essence(spec);
  const at = (place: string, engine: string) => {
    const found = (Array.isArray(mounts) ? (mounts as Mounted[]) : []).find(({ mountpoint }) => mountpoint === place);
    if (found?.type === engine && typeof found.path === "string") return found.path;
    throw new NodeError(`this node keeps ${place} in ${engine}; it cannot open a repo that has it in ${named(found)}`);
  };
  return { blocks: at("/blocks", "segments"), metadata: at("/", "lmdb") };
}

const named = (mount: Mounted | undefined): string => (mount === undefined ? "something else" : String(mount.type));
