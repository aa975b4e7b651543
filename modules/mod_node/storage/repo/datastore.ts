/**
 * The stores of a repo: `Datastore.Spec`, and the part of it that describes the data on the disk.
 */
import { resolve } from "node:path";
import { failure, type NodeError } from "../../util/errors.ts";
import { kuboRepoVersions } from "../../util/version.ts";
import { isObject, type JsonObject } from "./json.ts";

/** The settings of each engine that describe the data on the disk. */
const engines: ReadonlyMap<string, readonly string[]> = new Map([
  ["segments", ["path", "type"]],
  ["lmdb", ["path", "type"]],
  ["flatfs", ["path", "shardFunc", "type"]],
  ["levelds", ["path", "type"]],
  ["badgerds", ["path", "type"]],
  ["pebbleds", ["path", "type"]],
]);

/**
 * Returns the content of the file `datastore_spec`.
 * @throws NodeError with the text of go-ipfs
 */
export function diskSpec(spec: JsonObject): string {
  return JSON.stringify(diskSettings(spec));
}

function diskSettings(spec: JsonObject): JsonObject {
  const { type, mounts, child } = spec;
  if (typeof type !== "string") throw failure("DATASTORE_INVALID", { reason: "'type' field missing or not a string" });
  if (type === "measure" || type === "log") {
    if (!isObject(child)) throw failure("DATASTORE_INVALID", { reason: "'child' field is missing or not a map" });
    return diskSettings(child);
  }
  if (type === "mount") {
    if (!Array.isArray(mounts))
      throw failure("DATASTORE_INVALID", { reason: "'mounts' field is missing or not an array" });
    return { mounts: mounts.map(mounted).sort(deepestFirst), type };
  }
  const diskSettingNames = engines.get(type);
  if (diskSettingNames === undefined)
    throw failure("DATASTORE_UNSUPPORTED", { reason: `unknown datastore type: ${type}` });
  return Object.fromEntries(diskSettingNames.map((key) => [key, spec[key]]));
}

interface Mounted extends JsonObject {
  readonly mountpoint: string;
}

const deepestFirst = (one: Mounted, other: Mounted) => (one.mountpoint < other.mountpoint ? 1 : -1);

function mounted(mount: unknown): Mounted {
  if (!isObject(mount)) throw failure("DATASTORE_INVALID", { reason: "expected map for mountpoint" });
  const { mountpoint } = mount;
  if (typeof mountpoint !== "string") throw failure("DATASTORE_INVALID", { reason: "no 'mountpoint' on mount" });
  const entries = Object.entries({ ...diskSettings(mount), mountpoint });
  return Object.fromEntries(entries.sort(([one], [other]) => (one < other ? -1 : 1))) as unknown as Mounted;
}

/** The engine for blocks: that of this node, or that of go-ipfs. */
export type StoreKind = "segments" | "flatfs";

/** Paths of the stores of a repo, absolute or relative to the repo. */
export interface StorePaths {
  readonly kind: StoreKind;
  readonly blocks: string;
  /** The shard function of a `flatfs`. */
  readonly shardFunc?: string;
  /** Whether the files of a `flatfs` are named after CIDs (the default) or multihashes. */
  readonly namedAfter?: "cid" | "multihash";
  readonly metadata: string;
  /**
   * The database of the program that made the repo, with the data that this node stores in
   * `metadata`.
   */
  readonly foreign?: ForeignDatabase;
}

export type ForeignEngine = "levelds" | "pebbleds";

export interface ForeignDatabase {
  readonly engine: ForeignEngine;
  readonly path: string;
  readonly program: "go-ipfs" | "Kubo";
  /** Whether the blocks are in the same database. They are copied to `blocks`. */
  readonly hasBlocks?: boolean;
}

/** This node's folder in a repo that go-ipfs uses as well. */
export const ownFolder = "modhost";
const ownMetadata = `${ownFolder}/metadata`;

/** The paths of a node whose stores are not in its repo. */
export const defaultStorePaths: StorePaths = { kind: "segments", blocks: "segments", metadata: "metadata" };

/** Returns the same paths as absolute paths. */
export function resolveStorePaths(folder: string, { blocks, metadata, foreign, ...rest }: StorePaths): StorePaths {
  return {
    ...rest,
    blocks: resolve(folder, blocks),
    metadata: resolve(folder, metadata),
    ...(foreign === undefined ? {} : { foreign: { ...foreign, path: resolve(folder, foreign.path) } }),
  };
}

/**
 * Returns the paths of the stores in `spec`. `version` is the version of the repo, by default this
 * node's own.
 * @throws NodeError for stores that this node cannot open
 */
export function storePaths(spec: JsonObject, version?: string): StorePaths {
  const { mounts, type, path } = diskSettings(spec);
  const isOfKubo = kuboRepoVersions.includes(version ?? "");
  const program = isOfKubo ? "Kubo" : "go-ipfs";
  if (type === "pebbleds" && typeof path === "string" && isOfKubo) {
    const foreign = { engine: type, path, program, hasBlocks: true } as const;
    return { kind: "segments", blocks: `${ownFolder}/segments`, metadata: ownMetadata, foreign };
  }
  if (!Array.isArray(mounts)) throw unknownStore("everything", type);
  const found = new Map((mounts as Mounted[]).map((mount) => [mount.mountpoint, mount]));
  const blocks = found.get("/blocks");
  const rest = found.get("/");
  const other = (mounts as Mounted[]).find((mount) => mount !== blocks && mount !== rest);
  if (other !== undefined) throw unknownStore(other.mountpoint, "a store of its own");
  const paths = { ...blockPaths(blocks), ...metadataPaths(rest, program) };
  return paths.kind === "flatfs" && isOfKubo ? { ...paths, namedAfter: "multihash" } : paths;
}

function blockPaths(mount: Mounted | undefined): Pick<StorePaths, "kind" | "blocks" | "shardFunc"> {
  const { type, path, shardFunc }: Partial<Mounted> = mount ?? {};
  if (typeof path === "string") {
    if (type === "segments") return { kind: type, blocks: path };
    if (type === "flatfs" && typeof shardFunc === "string") return { kind: type, blocks: path, shardFunc };
  }
  throw unknownStore("/blocks", type);
}

function metadataPaths(
  mount: Mounted | undefined,
  program: ForeignDatabase["program"],
): Pick<StorePaths, "metadata" | "foreign"> {
  const { type, path }: Partial<Mounted> = mount ?? {};
  if (typeof path === "string") {
    if (type === "lmdb") return { metadata: path };
    if (type === "levelds" || (type === "pebbleds" && program === "Kubo"))
      return { metadata: ownMetadata, foreign: { engine: type, path, program } };
  }
  throw unknownStore("/", type);
}

function unknownStore(mountpoint: string, type: unknown): NodeError {
  const found = typeof type === "string" ? type : "nothing";
  if (type === "badgerds") {
    return failure("DATASTORE_UNSUPPORTED", {
      reason:
        `this node cannot open a repo with ${mountpoint} in badgerds: make a repo with \`ipfs init --profile=flatfs\` of Kubo, ` +
        "copy the pinned content with `ipfs dag export` and `ipfs dag import`, and use the new repo.",
    });
  }
  if (type === "pebbleds") {
    return failure("DATASTORE_UNSUPPORTED", {
      reason:
        `this node cannot make a repo with ${mountpoint} in pebbleds, it can only open those that Kubo has made: leave out the profile, so that ` +
        "blocks are stored in segments, or make the repo with `ipfs init --profile=pebbleds` of Kubo.",
    });
  }
  return failure("DATASTORE_UNSUPPORTED", {
    reason:
      `this node cannot open a repo with ${mountpoint} in ${found}: it stores /blocks in segments or flatfs, and / in ` +
      "lmdb or, like go-ipfs, in levelds; in a repo of Kubo, / or everything may be in pebbleds. Convert the repo with ipfs-ds-convert, or use another folder.",
  });
}
