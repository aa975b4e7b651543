/** From names to the paths that they stand for, step by step (network section 3.3). */

import { CID } from "multiformats/cid";
import { wholePath } from "../../content/resolver/path.ts";
import { dagPb, libp2pKey } from "../../formats/cid/codecs.ts";
import { sha256 } from "../../formats/cid/hashes.ts";
import { castCid, parseCid } from "../../formats/cid/text.ts";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import { NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import type { IpnsRecord } from "../ipns_record/record.ts";
import { parseTimestamp, timestampAfter } from "../ipns_record/timestamp.ts";
import type { NameCache } from "./cache.ts";
import { DEFAULT_MAX_DEPTH, isDomain, type LookupTxt, type ResolvedPath, resolveDnslink } from "./dnslink.ts";

/** How the records of a name are looked for. */
export interface RecordOptions {
  readonly signal?: AbortSignal | undefined;
  /** Look on this machine only; domains are looked up all the same. */
  readonly offline?: boolean | undefined;
  /** Records that are enough, 16 when nobody says; 0: as many as there are. */
  readonly count?: number | undefined;
  /** Milliseconds after which the best so far is taken, a minute when nobody says; 0: no limit. */
  readonly timeout?: number | undefined;
}

export interface ResolveOptions extends RecordOptions {
  /** Names that are followed at most: 32 when nobody says. */
  readonly depth?: number | undefined;
  /** Nothing is taken from the cache. */
  readonly nocache?: boolean | undefined;
}

export interface ResolverDeps {
  readonly cache: NameCache | undefined;
  /** Valid records of a name, each better than those before. */
  readonly records: (name: PeerId, options: RecordOptions) => AsyncIterable<IpnsRecord>;
  readonly lookUp: LookupTxt;
  /** Paths by name: they win over everything. */
  readonly fixed: ReadonlyMap<string, string>;
}

const named = "/ipns/";
const nanoseconds = 1e6;

/** What one step leads to, and how long that may be kept, in milliseconds. */
interface Step {
  readonly path: string;
  readonly life: number;
}

/**
 * What a name stands for, each better path as it is found; names that it stands for are followed. `name` may have a path
 * below it, which is put behind the result and not looked at. None when nobody knows.
 *
 * @throws NodeError with the reference's texts
 */
export async function* resolveName(
  name: string,
  parts: ResolverDeps,
  { depth = DEFAULT_MAX_DEPTH, ...options }: ResolveOptions = {},
): AsyncGenerator<ResolvedPath, void, undefined> {
  for await (const path of step(name, parts, options)) {
    if (!path.startsWith(named)) yield { path, limited: false };
    else if (depth === 1) yield { path, limited: true };
    else yield* resolveName(path.slice(named.length), parts, { ...options, depth: depth - 1 });
  }
}

async function* step(name: string, parts: ResolverDeps, options: ResolveOptions): AsyncGenerator<string> {
  const [root = ""] = name.split("/", 1);
  const below = name.slice(root.length);
  const whole = (path: string) => (below === "" ? path : path.replace(/\/+$/, "") + below);
  const id = nameIn(root);
  const key = id?.toString() ?? root;
  const known = parts.fixed.get(key) ?? (options.nocache ? undefined : parts.cache?.get(key));
  if (known !== undefined) {
    yield whole(known);
    return;
  }
  let best: Step | undefined;
  for await (best of id === undefined ? linked(root, parts, options) : recorded(id, parts, options)) {
    yield whole(best.path);
  }
  // What was asked for past the cache is as good as anything in it.
  if (best !== undefined) parts.cache?.set(key, best.path, best.life);
}

/** The name that a text is; undefined when it may be a domain. @throws NodeError of what looks like a name and is none */
function nameIn(text: string): PeerId | undefined {
  try {
    return parsePeerId(text);
  } catch {
    const cid = cidIn(text);
    if (cid?.version !== 1 || cid.code !== dagPb) return undefined;
    const right = CID.createV1(libp2pKey, cid.multihash);
    throw new NodeError(`peer ID represented as CIDv1 require libp2p-key multicodec: retry with /ipns/${right}`);
  }
}

function cidIn(text: string): CID | undefined {
  try {
    return parseCid(text);
  } catch {
    return undefined;
  }
}

/** DNS tells nothing of how long its answer holds. */
async function* linked(root: string, { lookUp }: ResolverDeps, { signal }: ResolveOptions): AsyncGenerator<Step> {
  if (!isDomain(root)) throw new NodeError(`invalid IPNS root: ${quote(root)}`, { code: "INVALID_PATH" });
  const { path } = await resolveDnslink(root, lookUp, { depth: 1, signal });
  yield { path, life: 0 };
}

async function* recorded(id: PeerId, { records }: ResolverDeps, options: ResolveOptions): AsyncGenerator<Step> {
  for await (const { value, ttl, validity } of records(id, options)) {
    const left = Number((parseTimestamp(validity) ?? 0n) - timestampAfter(0));
    yield { path: pathIn(value), life: Math.min(Number(ttl), left) / nanoseconds };
  }
}

/** Records of old hold a bare multihash. @throws NodeError when it is no path */
function pathIn(value: Uint8Array): string {
  const [code, length] = value;
  if (code === sha256.code && length === value.length - 2) return `/ipfs/${castCid(value)}`;
  return wholePath(Buffer.from(value).toString());
}
