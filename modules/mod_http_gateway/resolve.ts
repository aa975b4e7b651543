/** From a place to the block that it leads to. */
import { cidText, followNames, type NodeModule, parseCid, type ReadBlock, type Resolved } from "modhost/node";
import { Refusal } from "./errors/refusal.ts";
import { contentPath, type Place } from "./place.ts";

type Cid = Resolved["cid"];

export interface Found {
  readonly cid: Cid;
  /** The CID as text. */
  readonly text: string;
  /** For X-Ipfs-Roots. */
  readonly roots: readonly Cid[];
  /** Where a name is below `/ipns`: seconds for which the answer may be kept, undefined where nobody says. */
  readonly lifetime: { readonly seconds: number | undefined } | undefined;
}

export interface ReadingOf {
  readonly read: ReadBlock;
  readonly signal: AbortSignal | undefined;
  /** Nobody else is asked. */
  readonly offline: boolean;
}

/** @throws NodeError, {Refusal} 501 for a path that ends inside a document */
export async function find(node: NodeModule, place: Place, { read, signal, offline }: ReadingOf): Promise<Found> {
  const start =
    place.namespace === "ipfs" ? { root: place.root, below: [] } : await named(node, place, { signal, offline });
  const { cid, roots, remainder } = await followNames(parseCid(start.root), [...start.below, ...place.segments], read);
  if (remainder.length > 0) {
    throw new Refusal(
      501,
      `failed to resolve ${contentPath(place)}: the rest of the path, ${remainder.join("/")}, is a value inside ${cid}, which has no answer of its own`,
    );
  }
  return { cid, text: cidText(cid), roots, lifetime: "lifetime" in start ? start.lifetime : undefined };
}

interface Start {
  readonly root: string;
  readonly below: readonly string[];
  readonly lifetime: NonNullable<Found["lifetime"]>;
}

async function named(
  node: NodeModule,
  { root }: Place,
  how: { signal: AbortSignal | undefined; offline: boolean },
): Promise<Start> {
  const { path, limited, ttlMs } = await node.lowLevel.names.find(root, how);
  const [, namespace, start = "", ...below] = path.split("/");
  if (limited || namespace === "ipns")
    throw new Refusal(400, `failed to resolve /ipns/${root}: too many names lead to each other`);
  const seconds = ttlMs === undefined ? undefined : Math.max(0, Math.round(ttlMs / 1000));
  return { root: start, below: below.filter((name) => name !== ""), lifetime: { seconds } };
}
