/** Selects the blocks that are announced regularly, by `Reprovider` of the configuration. */
import type { CID } from "multiformats/cid";
import { nodeReader } from "../../content/dag/reader.ts";
import { walk } from "../../content/dag/walk.ts";
import type { Pins } from "../../content/pins/pins.ts";
import { dagPb } from "../../formats/cid/codecs.ts";
import { CidSet } from "../../formats/cid/set.ts";
import { pbData } from "../../formats/dag_pb/dag_pb.ts";
import { decodeUnixfs } from "../../formats/unixfs/format.ts";
import type { BlockService } from "../../storage/blockstore/block_service.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { failure } from "../../util/errors.ts";
import { parseDuration } from "../../util/go/duration.ts";

export interface StrategyDeps {
  readonly blocks: BlockService;
  readonly pins: Pins;
  /** Resolves to the root of the mutable namespace (MFS). */
  readonly filesRoot?: ((signal: AbortSignal) => Promise<CID>) | undefined;
}

/** Yields CIDs, each block at most once. */
export type Strategy = (deps: StrategyDeps, signal: AbortSignal) => AsyncIterable<CID>;

const DEFAULT_INTERVAL = "12h";

/** Sources that strategies combine with `+`. */
const sources = ["all", "pinned", "roots", "mfs"];
/** Modifiers of sources. `unique` has no effect, because each block counts once anyway. */
const modifiers = ["unique", "entities"];

/**
 * Provider records are by multihash, so the CIDs of one block, which a store lists together, count
 * once.
 */
const all: Strategy = async function* ({ blocks }) {
  let last: Uint8Array = new Uint8Array(0);
  for await (const cid of blocks.store.keys()) {
    if (Buffer.compare(cid.multihash.bytes, last) !== 0) yield cid;
    last = cid.multihash.bytes;
  }
};

const roots: Strategy = ({ pins }) => pinned(pins);

async function* pinned(pins: Pins): AsyncGenerator<CID, void, undefined> {
  yield* pins.list("recursive");
  yield* pins.list("direct");
}

/** Selects DAGs below roots, and directly pinned blocks. */
interface Below {
  readonly pinned: boolean;
  readonly mfs: boolean;
  /** Only announce the roots of files, not the blocks inside them. */
  readonly entities: boolean;
}

const below = (parts: Below): Strategy =>
  async function* ({ blocks, pins, filesRoot }, signal) {
    const read = nodeReader(blocks, { offline: true, signal, evenDenied: true });
    const follows = parts.entities ? isNoFile : undefined;
    const how = { read, signal, follows, skipLeaves: true, lenient: true, failed: () => undefined };
    const seen = new CidSet();
    if (parts.pinned) {
      for await (const root of pins.list("recursive"))
        for await (const { cid } of walk(root, { ...how, seen })) yield cid;
    }
    // Only stored blocks are announced: the namespace may contain files whose blocks are not stored
    // yet.
    const root = parts.mfs ? await filesRoot?.(signal) : undefined;
    if (root !== undefined)
      for await (const { cid } of walk(root, { ...how, seen })) if (await blocks.has(cid)) yield cid;
    // These come last, because no blocks below them are announced.
    if (parts.pinned) for await (const cid of pins.list("direct")) if (seen.add(cid)) yield cid;
  };

/** Whether a block is not a UnixFS file. Malformed blocks are not files. */
function isNoFile({ code }: CID, bytes: Uint8Array): boolean {
  if (code !== dagPb) return true;
  try {
    const data = pbData(bytes);
    return data === undefined || !["File", "Raw"].includes(decodeUnixfs(data).type);
  } catch {
    return true;
  }
}

/** @throws NodeError for an unknown strategy */
function strategyOf(name: string): Strategy {
  const parts = name.split("+");
  const chosen = parts.filter((part) => sources.includes(part));
  const changed = parts.filter((part) => modifiers.includes(part));
  const isKnown = chosen.length > 0 && chosen.length + changed.length === parts.length;
  const [first] = chosen;
  const isAlone = chosen.includes("all") || chosen.includes("roots");
  if (!isKnown || (isAlone && parts.length > 1))
    throw failure("CONFIG_INVALID", { reason: `unknown reprovider strategy '${name}'` });
  if (first === "all") return all;
  if (first === "roots") return roots;
  return below({
    pinned: chosen.includes("pinned"),
    mfs: chosen.includes("mfs"),
    entities: changed.includes("entities"),
  });
}

export interface AnnouncingSettings {
  /** Milliseconds between announcements; zero or negative for never. */
  readonly interval: number;
  readonly name: string;
  readonly strategy: Strategy;
}

/** @throws NodeError for an invalid interval or an unknown strategy */
export function announcingSettings(config: Pick<Repo["config"], "value">): AnnouncingSettings {
  const name = config.value("Reprovider.Strategy") || "all";
  return {
    name,
    strategy: strategyOf(name),
    interval: parseDuration(config.value("Reprovider.Interval") || DEFAULT_INTERVAL),
  };
}
