/** Resolves a target to the block that it leads to. */
import { cidText, followNames, type NodeModule, type ReadBlock, type Resolved } from "modhost/node";
import { type ContentTarget, contentPath } from "./content_target.ts";
import { Refusal } from "./errors/refusal.ts";
import type { DnsLinks } from "./hosts/dns_links.ts";
import { keyOf, rootCid } from "./request/path.ts";

type Cid = Resolved["cid"];

export interface Found {
  readonly cid: Cid;
  /** The CID as text. */
  readonly text: string;
  /** CIDs of the blocks on the path, for X-Ipfs-Roots. */
  readonly roots: readonly Cid[];
  /** The root and the names that were followed. */
  readonly from: Pick<Start, "root" | "names">;
  /**
   * Set for names below `/ipns`: seconds for which the response may be cached, undefined if
   * unknown.
   */
  readonly lifetime: { readonly seconds: number | undefined } | undefined;
}

export interface ReadingOf {
  readonly readPath: ReadBlock;
  readonly signal: AbortSignal | undefined;
  /** Whether other nodes must not be asked. */
  readonly offline: boolean;
  readonly links: Pick<DnsLinks, "find">;
}

/**
 * @param isOfBlock whether the caller wants the block of a document that contains the end of the
 * path @throws NodeError, {Refusal} 501 for a path that ends inside a document, unless `isOfBlock`
 */
export async function find(
  node: NodeModule,
  target: ContentTarget,
  reading: ReadingOf,
  isOfBlock = false,
): Promise<Found> {
  const { root, names, lifetime } = await start(node, target, reading);
  const { cid, roots, remainder } = await followNames(rootCid(root), names, reading.readPath);
  // The block itself is not read, because a condition may make that unnecessary.
  node.lowLevel.blocks.denials?.requireBlock(cid);
  if (remainder.length > 0 && !isOfBlock) {
    const rest = remainder.join("/");
    throw new Refusal(
      501,
      `failed to resolve ${contentPath(target)}: the rest of the path, ${rest}, is a value inside ${cid}, which cannot be served by itself`,
    );
  }
  return { cid, text: cidText(cid), roots, from: { root, names }, lifetime };
}

export interface Start extends Pick<Found, "lifetime"> {
  /** CID of the root. */
  readonly root: string;
  /** The names to follow from the root. */
  readonly names: readonly string[];
}

/**
 * Resolves the name of a target. Returns the root and the remaining names. @throws NodeError,
 * {Refusal} 400 for names that refer to each other in a circle
 */
export async function start(
  node: NodeModule,
  { namespace, root, below: within = [], segments: shown }: ContentTarget,
  how: Omit<ReadingOf, "readPath">,
): Promise<Start> {
  const segments = within.length === 0 ? shown : [...within, ...shown];
  const { denylists } = node.lowLevel;
  denylists.requirePath(namespace, root, segments);
  if (namespace === "ipfs") return { root, names: segments, lifetime: undefined };
  const { path, limited, ttlMs } = await pathOf(node, root, how);
  const [, kind, first = "", ...below] = path.split("/");
  if (limited || kind === "ipns") {
    throw new Refusal(400, `failed to resolve /ipns/${root}: the chain of names is too long`);
  }
  const seconds = ttlMs === undefined ? undefined : Math.max(0, Math.round(ttlMs / 1000));
  const names = [...below.filter((name) => name !== ""), ...segments];
  denylists.requirePath("ipfs", first, names);
  return { root: first, names, lifetime: { seconds } };
}

const NAMES = "/ipns/";
/** Maximum number of names that refer to each other. */
const MAX_NAMES = 32;

/**
 * Returns the path that a name resolves to. For a domain, the first step may already be in the
 * cache of host lookups.
 */
async function pathOf(node: NodeModule, root: string, { signal, offline, links }: Omit<ReadingOf, "readPath">) {
  const { names } = node.lowLevel;
  if (keyOf(root) !== undefined) return names.find(root, { signal, offline });
  const path = await links.find(root);
  if (!path.startsWith(NAMES)) return { path, limited: false, ttlMs: undefined };
  return names.find(path.slice(NAMES.length), { signal, offline, depth: MAX_NAMES - 1 });
}
