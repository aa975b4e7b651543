/** Pins: objects that garbage collection does not remove. */
import { CID } from "multiformats/cid";
import { type PinMode, requirePinName } from "../content/pins/pins.ts";
import { verifyPins } from "../content/pins/verify.ts";
import { CidSet } from "../formats/cid/set.ts";
import { cidWriter } from "../formats/cid/writer.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { ExternalSortedMap, jsonCodec } from "../storage/external_sorted_map.ts";
import { TimeSlices } from "../util/async/steps.ts";
import { failure, NodeError, reworded } from "../util/errors.ts";
import { announceToNetwork } from "./add_roots.ts";
import { type CallOptions, type IpfsPath, listOf, pathText, readOptions } from "./common.ts";
import { type PinRemoteApi, pinRemoteApi } from "./pin_remote.ts";

/** An object to pin: its path, or its path with options. */
export type PinInput =
  | IpfsPath
  | { readonly cid?: CID; readonly path?: IpfsPath; readonly recursive?: boolean | undefined };

/** One pin, or several in order. */
export type PinSource = PinInput | Iterable<PinInput> | AsyncIterable<PinInput>;

export interface PinAddAllOptions extends CallOptions {
  /** Called with the number of blocks visited so far, over all objects, and their bytes. */
  readonly progress?: ((blocks: number, bytes: number) => void) | undefined;
  /** Name of the pins, at most 255 bytes. Without it, pins that have a name lose it. */
  readonly name?: string | undefined;
  /**
   * Announce the object to the network at once (default). "wait" waits for the announcement, and
   * fails if it fails.
   */
  readonly announce?: boolean | "wait" | undefined;
}

export interface PinAddOptions extends PinAddAllOptions {
  /** Also pin everything below the object; true by default. */
  readonly recursive?: boolean | undefined;
}

export interface PinRmOptions extends CallOptions {
  /** Allow removing a recursive pin; true by default. */
  readonly recursive?: boolean | undefined;
}

export interface PinLsOptions extends CallOptions {
  /** Objects to look up, reported in this order; by default all pins are listed. */
  readonly paths?: IpfsPath | readonly IpfsPath[] | undefined;
  /** `direct`, `indirect`, `recursive`, or `all`, which is the default. */
  readonly type?: string | undefined;
  /** Also report the names of pins. */
  readonly names?: boolean | undefined;
  /** Only list pins whose name contains this text, and report their names; ignored with `paths`. */
  readonly name?: string | undefined;
}

export interface PinLsResult {
  readonly cid: CID;
  /**
   * `direct`, `indirect` or `recursive`; `indirect through CID` for an object that was looked up.
   */
  readonly type: string;
  /** Present if names were requested and the pin has one. */
  readonly name?: string;
}

export interface SortedPin {
  /** The text of the CID. */
  readonly text: string;
  readonly type: string;
  readonly name?: string;
}

/**
 * Pins sorted by the text of their CIDs, each once. They can be iterated repeatedly until they are
 * closed. A pin that is added or removed meanwhile may or may not appear.
 */
export interface SortedPins extends AsyncIterable<SortedPin> {
  pages(): AsyncIterable<readonly SortedPin[]>;
  close(): Promise<void>;
}

export interface PinUpdateOptions extends CallOptions {
  /** Remove the old pin; true by default. */
  readonly unpin?: boolean | undefined;
  /**
   * "wait" announces the new object and waits for it, or fails; by default the next regular
   * announcement includes it.
   */
  readonly announce?: boolean | "wait" | undefined;
}

export interface PinVerifyOptions extends CallOptions {
  /** Also report pins that are complete. */
  readonly verbose?: boolean | undefined;
}

export interface PinVerifyResult {
  readonly cid: CID;
  readonly ok: boolean;
  /** Blocks of the DAG that are missing or malformed. */
  readonly badNodes: readonly { readonly cid: CID; readonly err: string }[];
}

export interface PinApi {
  /** Pins an object, fetching missing blocks. */
  add(path: IpfsPath, options?: PinAddOptions): Promise<CID>;
  /** Pins objects one after the other; each pin is durable when it is yielded. */
  addAll(source: PinSource, options?: PinAddAllOptions): AsyncIterable<CID>;
  ls(options?: PinLsOptions): AsyncIterable<PinLsResult>;
  /**
   * Like `ls`, but sorted. `text` formats the CIDs; undefined means `String`, and stored pins are
   * then read in the order of the store. With another format, or if indirect pins are listed, more
   * than a few thousand pins are sorted on disk.
   */
  sorted(text: ((cid: CID) => string) | undefined, options?: PinLsOptions): Promise<SortedPins>;
  /** @throws NodeError if the object is not pinned in this way */
  rm(path: IpfsPath, options?: PinRmOptions): Promise<CID>;
  rmAll(source: PinSource, options?: CallOptions): AsyncIterable<CID>;
  /**
   * Moves a pin to another object, and visits only blocks that the two do not share. Resolves to
   * both CIDs.
   */
  update(from: IpfsPath, to: IpfsPath, options?: PinUpdateOptions): Promise<[from: CID, to: CID]>;
  /**
   * Checks that all recursive pins are complete. Yields broken pins, or all pins with `verbose`.
   */
  verify(options?: PinVerifyOptions): AsyncIterable<PinVerifyResult>;
  readonly remote: PinRemoteApi;
}

const pinTypes: readonly string[] = ["direct", "indirect", "recursive", "all"];

interface PlannedPin {
  readonly path: string;
  readonly recursive: boolean;
}

function plannedPin(input: PinInput): PlannedPin {
  const named = typeof input === "string" ? input : CID.asCID(input);
  if (named !== null) return { path: pathText(named), recursive: true };
  const { cid, path = cid, recursive } = input as Exclude<PinInput, IpfsPath>;
  if (path === undefined) throw failure("ARGUMENT_INVALID", { reason: "a pin needs a cid or a path" });
  return { path: pathText(path), recursive: recursive !== false };
}

async function* plannedPins(source: PinSource): AsyncGenerator<PlannedPin> {
  if (typeof source !== "string" && (Symbol.iterator in source || Symbol.asyncIterator in source)) {
    for await (const input of source) yield plannedPin(input);
  } else {
    yield plannedPin(source as PinInput);
  }
}

async function* addAll(
  node: LowLevelNode,
  source: PinSource,
  { progress, name, announce, ...options }: PinAddAllOptions,
) {
  requirePinName(name);
  const how = readOptions(options);
  const before = { blocks: 0, bytes: 0 };
  for await (const { path, recursive } of plannedPins(source)) {
    const { cid } = await node.resolve(path, how);
    const own = { blocks: 0, bytes: 0 };
    const count =
      progress &&
      ((blocks: number, bytes: number) => {
        Object.assign(own, { blocks, bytes });
        progress(before.blocks + blocks, before.bytes + bytes);
      });
    try {
      await node.pins.add(cid, recursive ? "recursive" : "direct", { ...how, name, progress: count });
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      throw reworded(error, `pin: ${error.message}`);
    }
    if (how.offline !== true && announce !== false) node.announce([cid]);
    before.blocks += own.blocks;
    before.bytes += own.bytes;
    yield cid;
    if (announce === "wait") await announceToNetwork(node, [cid], how);
  }
}

async function* rmAll(node: LowLevelNode, source: PinSource, options: CallOptions) {
  const how = { ...readOptions(options), evenDenied: true };
  for await (const { path, recursive } of plannedPins(source)) {
    const { cid } = await node.resolve(path, how);
    await node.pins.remove(cid, recursive);
    yield cid;
  }
}

/** Returns the name of a pin if the options request names. */
const named = async (
  node: LowLevelNode,
  cid: CID,
  { names, name }: PinLsOptions,
): Promise<{ readonly name?: string }> => {
  const found = names === true || name ? await node.pins.name(cid) : "";
  return found === "" ? {} : { name: found };
};

/** All pins of a type: the stored ones, then the indirect ones. */
async function* listAll(node: LowLevelNode, type: string, options: PinLsOptions): AsyncGenerator<PinLsResult> {
  const { signal } = readOptions(options);
  const { name: part = "" } = options;
  const isBelow = part === "" && (type === "all" || type === "indirect");
  const listed = new CidSet();
  for (const mode of ["recursive", "direct"] as const) {
    if (type !== mode && type !== "all" && !isBelow) continue;
    for await (const cid of node.pins.list(mode)) {
      if (isBelow) listed.add(cid);
      if (type === "indirect") continue;
      const found = await named(node, cid, options);
      if (part === "" || found.name?.includes(part)) yield { cid, type: mode, ...found };
    }
  }
  if (!isBelow) return;
  for await (const cid of node.pins.indirect(listed, signal)) yield { cid, type: "indirect" };
}

/**
 * Yields the pins of the given objects, in their order. @throws NodeError at the first object that
 * is not pinned in this way
 */
async function* listGiven(
  node: LowLevelNode,
  given: readonly IpfsPath[],
  type: string,
  options: PinLsOptions,
): AsyncGenerator<PinLsResult> {
  const how = { ...readOptions(options), evenDenied: true };
  const found: { path: string; cid: CID; stored: PinMode | undefined }[] = [];
  let delayedError: unknown;
  for (const path of given.map(pathText)) {
    try {
      const { cid } = await node.resolve(path, how);
      found.push({ path, cid, stored: await node.pins.mode(cid) });
    } catch (error) {
      // Throw this error only after the pins of earlier paths were yielded.
      delayedError = error;
      break;
    }
  }
  const open = found.filter(({ stored }) => type === "indirect" || (type === "all" && stored === undefined));
  const through = await node.pins.rootsAbove(
    open.map(({ cid }) => cid),
    how.signal,
  );
  for (const { path, cid, stored } of found) {
    const root = through.get(cid.toString());
    if (type !== "indirect" && stored !== undefined && (type === "all" || type === stored)) {
      yield { cid, type: stored, ...(await named(node, cid, options)) };
    } else if (root !== undefined) {
      yield { cid, type: `indirect through ${root}` };
    } else {
      throw failure("NOT_PINNED", { reason: `path '${path}' is not pinned` });
    }
  }
  if (delayedError !== undefined) throw delayedError;
}

/** @throws NodeError for an unknown type */
function list(node: LowLevelNode, { paths = [], type = "all", ...options }: PinLsOptions): AsyncIterable<PinLsResult> {
  if (!pinTypes.includes(type)) {
    throw failure("OPTION_INVALID", {
      reason: `invalid type '${type}', must be one of {direct, indirect, recursive, all}`,
    });
  }
  const given = listOf(paths);
  return given.length > 0 ? listGiven(node, given, type, options) : listAll(node, type, options);
}

/** Lists stored pins of one mode; the store sorts them by their texts. */
function inStoredOrder(node: LowLevelNode, type: PinMode, signal: AbortSignal | undefined): SortedPins {
  async function* pages() {
    for await (const texts of node.pins.pagesOfTexts(type)) {
      signal?.throwIfAborted();
      yield texts.map((text) => ({ text, type }));
    }
  }
  return withPages(pages, async () => {});
}

const withPages = (pages: SortedPins["pages"], close: SortedPins["close"]): SortedPins => ({
  pages,
  close,
  async *[Symbol.asyncIterator]() {
    for await (const page of pages()) yield* page;
  },
});

async function sorted(
  node: LowLevelNode,
  text: ((cid: CID) => string) | undefined,
  options: PinLsOptions,
): Promise<SortedPins> {
  const { paths = [], type, names, name } = options;
  const isStored = type === "recursive" || type === "direct";
  if (text === undefined && isStored && listOf(paths).length === 0 && names !== true && !name) {
    return inStoredOrder(node, type, readOptions(options).signal);
  }
  return onDisk(node, text ?? cidWriter({}), options);
}

async function onDisk(node: LowLevelNode, text: (cid: CID) => string, options: PinLsOptions): Promise<SortedPins> {
  const types = new ExternalSortedMap<Omit<SortedPin, "text">>(node.scratch, jsonCodec());
  const close = () => types.clear();
  try {
    const slices = new TimeSlices();
    for await (const { cid, ...pin } of list(node, options)) {
      const stored = types.set(0, text(cid), pin) ?? slices.due();
      if (stored !== undefined) await stored;
    }
  } catch (error) {
    await close();
    throw error;
  }
  async function* pages() {
    for await (const page of types.pages(0)) yield page.map(([text, pin]) => ({ text, ...pin }));
  }
  return withPages(pages, close);
}

export function pinApi(node: LowLevelNode): PinApi {
  const only = async (cids: AsyncIterable<CID>) => (await Array.fromAsync(cids))[0] as CID;
  return {
    add: (path, { recursive, ...options } = {}) => only(addAll(node, [{ path, recursive }], options)),
    addAll: (source, options = {}) => addAll(node, source, options),
    async *ls(options = {}) {
      yield* list(node, options);
    },
    sorted: (text, options = {}) => sorted(node, text, options),
    rm: (path, { recursive, ...options } = {}) => only(rmAll(node, [{ path, recursive }], options)),
    rmAll: (source, options = {}) => rmAll(node, source, options),
    async update(from, to, { unpin, announce = false, ...options } = {}) {
      const how = readOptions(options);
      const { cid: old } = await node.resolve(pathText(from), how);
      const { cid: pinned } = await node.resolve(pathText(to), how);
      await node.pins.update(old, pinned, unpin !== false, how);
      if (announce === true && how.offline !== true) node.announce([pinned]);
      if (announce === "wait") await announceToNetwork(node, [pinned], how);
      return [old, pinned];
    },
    async *verify({ verbose, ...options } = {}) {
      const { signal } = readOptions(options);
      for await (const { root: cid, bad } of verifyPins(node.blocks, node.pins, signal)) {
        const ok = bad.length === 0;
        if (ok && verbose !== true) continue;
        yield { cid, ok, badNodes: bad.map(({ cid, message: err }) => ({ cid, err })) };
      }
    },
    remote: pinRemoteApi(node),
  };
}
