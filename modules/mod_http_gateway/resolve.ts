/** From a place to the block that it leads to. */
import { cidText, followNames, type NodeModule, type ReadBlock, type Resolved } from "modhost/node";
import { Refusal } from "./errors/refusal.ts";
import type { DnsLinks } from "./hosts/dns_links.ts";
import { contentPath, type Place } from "./place.ts";
import { keyOf, rootCid } from "./request/path.ts";

type Cid = Resolved["cid"];

export interface Found {
  readonly cid: Cid;
  /** The CID as text. */
  readonly text: string;
  /** For X-Ipfs-Roots. */
  readonly roots: readonly Cid[];
  /** The path that was followed. */
  readonly from: Pick<Start, "root" | "names">;
  /** Where a name is below `/ipns`: seconds for which the answer may be kept, undefined where nobody says. */
  readonly lifetime: { readonly seconds: number | undefined } | undefined;
}

export interface ReadingOf {
  readonly readPath: ReadBlock;
  readonly signal: AbortSignal | undefined;
  /** Nobody else is asked. */
  readonly offline: boolean;
  readonly links: Pick<DnsLinks, "find">;
}

/** @throws NodeError, {Refusal} 501 for a path that ends inside a document */
export async function find(node: NodeModule, place: Place, reading: ReadingOf): Promise<Found> {
  const { root, names, lifetime } = await start(node, place, reading);
  const { cid, roots, remainder } = await followNames(rootCid(root), names, reading.readPath);
  // What is answered need not be read: a condition may fit.
  node.lowLevel.blocks.denials?.requireBlock(cid);
  if (remainder.length > 0) {
    const rest = remainder.join("/");
    throw new Refusal(
      501,
      `failed to resolve ${contentPath(place)}: the rest of the path, ${rest}, is a value inside ${cid}, which has no answer of its own`,
    );
  }
  return { cid, text: cidText(cid), roots, from: { root, names }, lifetime };
}

export interface Start extends Pick<Found, "lifetime"> {
  /** A CID. */
  readonly root: string;
  /** What is to be followed from there. */
  readonly names: readonly string[];
}

/** Where a place begins, once its name is resolved. @throws NodeError, {Refusal} 400 for names that lead to each other */
export async function start(
  node: NodeModule,
  { namespace, root, below: within = [], segments: shown }: Place,
  how: Omit<ReadingOf, "readPath">,
): Promise<Start> {
  const segments = within.length === 0 ? shown : [...within, ...shown];
  const { denylists } = node.lowLevel;
  denylists.requirePath(namespace, root, segments);
  if (namespace === "ipfs") return { root, names: segments, lifetime: undefined };
  const { path, limited, ttlMs } = await pathOf(node, root, how);
  const [, kind, first = "", ...below] = path.split("/");
  if (limited || kind === "ipns") {
    throw new Refusal(400, `failed to resolve /ipns/${root}: too many names lead to each other`);
  }
  const seconds = ttlMs === undefined ? undefined : Math.max(0, Math.round(ttlMs / 1000));
  const names = [...below.filter((name) => name !== ""), ...segments];
  denylists.requirePath("ipfs", first, names);
  return { root: first, names, lifetime: { seconds } };
}

const NAMES = "/ipns/";
/** Names that lead to each other. */
const MAX_NAMES = 32;

/** Where a name leads: of a domain its first step is one that may have been looked up for the host already. */
async function pathOf(node: NodeModule, root: string, { signal, offline, links }: Omit<ReadingOf, "readPath">) {
  const { names } = node.lowLevel;
  if (keyOf(root) !== undefined) return names.find(root, { signal, offline });
  const path = await links.find(root);
  if (!path.startsWith(NAMES)) return { path, limited: false, ttlMs: undefined };
  return names.find(path.slice(NAMES.length), { signal, offline, depth: MAX_NAMES - 1 });
}
