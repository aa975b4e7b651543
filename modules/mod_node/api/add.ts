/** Adding files and trees. */
import type { CID } from "multiformats/cid";
import { addEntries, hashOnly } from "../content/adder/adder.ts";
import { shardingBySize, withImportConfig } from "../content/adder/import_config.ts";
import { addSettings, type UnixfsAddOptions } from "../content/adder/settings.ts";
import { requirePinName } from "../content/pins/pins.ts";
import type { AddEntry, AddEvent, AddSettings } from "../content/unixfs/add.ts";
import type { Names } from "../formats/cid/codecs.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { failure } from "../util/errors.ts";
import { requireLinkable, withRoots } from "./add_roots.ts";
import {
  type Candidate,
  type ImportCandidate,
  type ImportCandidates,
  manyCandidates,
  oneCandidate,
} from "./candidates.ts";
import { type CallOptions, readOptions, type ShardingMode } from "./common.ts";
import { type ModeInput, modeOf, type TimeInput, timeOf } from "./mode_and_time.ts";

export interface AddTreeOptions extends CallOptions {
  /**
   * How files are split into chunks: `size-BYTES` (by default 262144), `rabin-MIN-AVG-MAX` or
   * `buzhash`.
   */
  readonly chunker?: string | undefined;
  /** Version of CIDs: 0 unless an option needs 1. */
  readonly cidVersion?: number | undefined;
  /** Hash function by name; `sha2-256` by default, another one implies version 1. */
  readonly hashAlg?: string | undefined;
  /** Same as `hashAlg`. */
  readonly hash?: string | undefined;
  /** Store chunks as raw blocks; true by default for CIDs of version 1. */
  readonly rawLeaves?: boolean | undefined;
  /** Store small blocks in their CIDs (identity hash) instead of the block store. */
  readonly inline?: boolean | undefined;
  /** Largest block, in bytes, that is stored in its CID; 32 by default. */
  readonly inlineLimit?: number | undefined;
  /** Use the trickle layout, for files that are read from their beginning. */
  readonly trickle?: boolean | undefined;
  /** Wrap everything in one directory. */
  readonly wrapWithDirectory?: boolean | undefined;
  /** Pin the added content recursively; true by default. */
  readonly pin?: boolean | undefined;
  /** Name of the pins, at most 255 bytes. Without it, pins that have a name lose it. */
  readonly pinName?: string | undefined;
  /**
   * Also link the added content into the mutable namespace. A path that is empty or ends with a
   * slash names the directory to link into; any other path names the only entry itself.
   */
  readonly toFiles?: string | undefined;
  /**
   * Announce the added content to the network at once (default). False leaves it to the next
   * regular announcement. "wait" waits for the announcement, and fails after the last result if no
   * peer could be reached. An offline node announces nothing.
   */
  readonly announce?: boolean | "wait" | undefined;
  /** Compute the CIDs and store nothing. */
  readonly onlyHash?: boolean | undefined;
  /**
   * Store references to the files that entries name as their `backing`, instead of their bytes;
   * implies `rawLeaves`.
   */
  readonly nocopy?: boolean | undefined;
  /** Check the filestore for existing chunks first. */
  readonly fscache?: boolean | undefined;
  /** Yield results for directories only. */
  readonly silent?: boolean | undefined;
  /** Also yield progress events, every 256 KiB of each file. */
  readonly progress?: boolean | undefined;
  /**
   * Permissions of every file and directory. This option and the next three switch raw leaves off,
   * and cannot be combined with them.
   */
  readonly mode?: ModeInput | undefined;
  /** Modification time of every file, directory and symlink. */
  readonly mtime?: TimeInput | undefined;
  /** Entries keep their own permissions, unless `mode` is given. */
  readonly preserveMode?: boolean | undefined;
  /** Entries keep their own times, unless `mtime` is given. */
  readonly preserveMtime?: boolean | undefined;
  /**
   * Maximum number of links of an interior node of a file, at least 2. The default is 174; 0 and
   * negative values mean the default.
   */
  readonly maxFileLinks?: number | undefined;
  /** Keep directories without entries; true by default. Top-level directories are always kept. */
  readonly emptyDirs?: boolean | undefined;
  /**
   * When directories are sharded: if `Experimental.ShardingEnabled` of the configuration is on
   * (default), or by their size, as `Import.*` says.
   */
  readonly sharding?: ShardingMode | undefined;
  /**
   * Number of entries above which sharding by size shards a directory. The configuration sets the
   * default; 0 means no limit.
   */
  readonly maxDirectoryLinks?: number | undefined;
  /** Slots of a shard: a power of 2 from 8 to 1024, 256 by default. */
  readonly maxHamtFanout?: number | undefined;
  /** Maximum size of a chunk in bytes; 1 MiB by default. */
  readonly maxChunk?: number | undefined;
  /** Maximum accepted value of `inlineLimit`; unlimited by default. */
  readonly maxInline?: number | undefined;
  /** Names by which hash functions are given; the names of go-ipfs 0.9 by default. */
  readonly names?: Names;
  /** Use `Import.*` of the configuration for options that are not given; true by default. */
  readonly importDefaults?: boolean | undefined;
}

export interface AddOptions extends Omit<AddTreeOptions, "progress"> {
  /** Called with the number of bytes read so far, and the path of the file. */
  readonly progress?: ((bytes: number, path?: string) => void) | undefined;
}

export interface AddResult {
  readonly cid: CID;
  /** Path from the root of the tree; the CID for a file without a name. */
  readonly path: string;
  /** Total bytes of its blocks, including everything below it. */
  readonly size: number;
}

export interface AddApi {
  /**
   * Adds one file or one directory. When the promise resolves, the content is on the disk, and
   * pinned unless `pin` is false.
   *
   * @throws NodeError for unsupported input, and for options that exclude each other
   */
  add(input: ImportCandidate, options?: AddOptions): Promise<AddResult>;
  /**
   * Adds files and directories. Yields each file as it is added, and each directory after its
   * contents.
   *
   * @throws NodeError as `add`
   */
  addAll(input: ImportCandidates, options?: AddOptions): AsyncIterable<AddResult>;
  /**
   * Like `addAll`, for entries with an explicit type (symlinks included). Progress events appear
   * among the results.
   */
  addTree(entries: AsyncIterable<AddEntry>, options?: AddTreeOptions): AsyncIterable<AddEvent>;
}

export function addApi(node: LowLevelNode): AddApi {
  async function* addTree(entries: AsyncIterable<AddEntry>, options: AddTreeOptions = {}): AsyncGenerator<AddEvent> {
    const { pin = true, pinName, nocopy = false, fscache = false } = options;
    if (pinName !== undefined && (!pin || options.onlyHash === true))
      throw failure("OPTION_CONFLICT", { reason: "pin-name option requires pin to be set" });
    requirePinName(pinName);
    requireLinkable(options);
    const { signal, offline } = readOptions(options);
    const settings: AddSettings = { ...settingsOf(node, options), backing: nocopy ? "required" : "ignored" };
    if (nocopy && node.filestore === undefined) throw failure("REFERENCES_OFF");
    const mute = options.announce === false;
    const events = options.onlyHash
      ? hashOnly(entries, settings, { scratch: node.scratch, signal })
      : addEntries(node, entries, settings, { pin, pinName, references: nocopy || fscache, signal, offline, mute });
    for await (const event of withRoots(node, events, options, { signal, offline })) {
      if (event.kind === "file" && event.built !== undefined) {
        node.counts.added.files += 1;
        node.counts.added.bytes += event.built.size;
      }
      if (options.silent !== true || (event.kind !== "file" && event.kind !== "symlink")) yield event;
    }
  }

  async function* added(entries: AsyncIterable<AddEntry>, { progress: onProgress, ...options }: AddOptions) {
    const progress = typeof onProgress === "function";
    for await (const { name, built, bytes = 0 } of addTree(entries, { ...options, progress })) {
      if (built !== undefined) yield { path: name, cid: built.cid, size: built.size };
      else onProgress?.(bytes, name);
    }
  }

  return {
    async add(input, options = {}) {
      let last: AddResult | undefined;
      for await (const result of added(entriesOf([await oneCandidate(input)]), options)) last = result;
      if (last === undefined) throw failure("INPUT_INVALID", { reason: "Invalid body" });
      return last;
    },
    addAll: (input, options = {}) => added(entriesOf(manyCandidates(input)), options),
    addTree,
  };
}

function settingsOf(node: LowLevelNode, options: AddTreeOptions): AddSettings {
  const { hashAlg, hash = hashAlg, wrapWithDirectory: wrap, importDefaults = true } = options;
  const given = { ...options, hash, wrap, mode: modeOf(options.mode), mtime: timeOf(options.mtime) };
  const { config } = node.repo;
  return addSettings({ ...(importDefaults ? withImportConfig(given, config) : given), ...shardingOf(node, options) });
}

function shardingOf(
  { repo: { config }, sizeSharding }: LowLevelNode,
  { sharding, maxDirectoryLinks, maxHamtFanout }: AddTreeOptions,
): Pick<UnixfsAddOptions, "sharded" | "fanout"> {
  if (sharding !== "by size") {
    return { sharded: config.value("Experimental.ShardingEnabled"), fanout: maxHamtFanout };
  }
  const { sharded, fanout } = shardingBySize(config);
  // Like the reference, the node uses the size threshold that it read at its start.
  const { threshold } = sizeSharding.sharded;
  const maxLinks = maxDirectoryLinks === undefined ? sharded.maxLinks : Math.max(0, maxDirectoryLinks);
  return { sharded: { ...sharded, threshold, maxLinks }, fanout: maxHamtFanout ?? fanout };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** @throws NodeError when there are no entries */
async function* entriesOf(candidates: AsyncIterable<Candidate> | Iterable<Candidate>): AsyncGenerator<AddEntry> {
  let any = false;
  for await (const { content, ...known } of candidates) {
    any = true;
    if (content === undefined) yield { ...known, kind: "directory", body: nothing() };
    else yield { ...known, kind: "file", body: content };
  }
  if (!any) throw failure("FILE_ARGUMENT_MISSING");
}
