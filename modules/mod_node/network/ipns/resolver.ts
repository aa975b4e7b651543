/** Resolves names to paths, step by step. */

import { CID } from "multiformats/cid";
import { fullPath } from "../../content/resolver/path.ts";
import { dagPb, libp2pKey } from "../../formats/cid/codecs.ts";
import { sha256 } from "../../formats/cid/hashes.ts";
import { castCid, parseCid } from "../../formats/cid/text.ts";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import { NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { trimEnd } from "../../util/trim.ts";
import type { IpnsRecord } from "../ipns_record/record.ts";
import { parseTimestamp, timestampAfter } from "../ipns_record/timestamp.ts";
import type { NameCache } from "./cache.ts";
import { DEFAULT_MAX_DEPTH, isDomain, type LookupTxt, type ResolvedPath, resolveDnslink } from "./dnslink.ts";

/** Options of a search for the records of a name. */
export interface RecordOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether to search on this machine only; domains are looked up nevertheless. */
  readonly offline?: boolean | undefined;
  /** Number of records that suffices, by default 16; 0 for all. */
  readonly count?: number | undefined;
  /** If false, the routing system only queries the DHT, and no HTTP routers. */
  readonly delegated?: boolean | undefined;
  /**
   * Milliseconds after which the best record so far is used, by default a minute; 0 for no limit.
   */
  readonly timeout?: number | undefined;
}

export interface ResolveOptions extends RecordOptions {
  /** Maximum number of names to follow, by default 32. */
  readonly depth?: number | undefined;
  /** Whether to ignore cached results. */
  readonly nocache?: boolean | undefined;
}

export interface ResolverDeps {
  readonly cache: NameCache | undefined;
  /** Yields valid records of a name, each better than the previous ones. */
  readonly records: (name: PeerId, options: RecordOptions) => AsyncIterable<IpnsRecord>;
  readonly lookUp: LookupTxt;
  /** Throws for a name that must not be resolved because a denylist contains it. */
  readonly requireServed?: ((name: string) => void) | undefined;
  /** Paths by name, from IPFS_NS_MAP. They take precedence over everything else. */
  readonly fixed: ReadonlyMap<string, string>;
}

const IPNS_PREFIX = "/ipns/";
const NS_PER_MS = 1e6;

/** The result of one step. */
interface Step {
  readonly path: string;
  /** Milliseconds for which it may be cached; undefined if unknown. */
  readonly ttlMs: number | undefined;
}

/**
 * Yields the paths that a name resolves to, each better than the previous ones, and follows names
 * in them. A path below `name` is appended to each result. Yields nothing if nothing is found.
 *
 * @throws NodeError with go-ipfs's texts
 */
export async function* resolveName(
  name: string,
  deps: ResolverDeps,
  { depth = DEFAULT_MAX_DEPTH, ...options }: ResolveOptions = {},
): AsyncGenerator<ResolvedPath, void, undefined> {
  for await (const { path, ttlMs } of step(name, deps, options)) {
    if (!path.startsWith(IPNS_PREFIX)) yield { path, limited: false, ttlMs };
    else if (depth === 1) yield { path, limited: true, ttlMs };
    else {
      for await (const end of resolveName(path.slice(IPNS_PREFIX.length), deps, { ...options, depth: depth - 1 })) {
        yield { ...end, ttlMs: shorter(ttlMs, end.ttlMs) };
      }
    }
  }
}

const shorter = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);

async function* step(name: string, deps: ResolverDeps, options: ResolveOptions): AsyncGenerator<Step> {
  const [root = ""] = name.split("/", 1);
  const below = name.slice(root.length);
  deps.requireServed?.(root);
  const full = (path: string) => (below === "" ? path : trimEnd(path, "/") + below);
  const id = nameIn(root);
  const key = id?.toString() ?? root;
  const fixed = deps.fixed.get(key);
  const known = fixed === undefined && !options.nocache ? deps.cache?.get(key) : undefined;
  if (fixed !== undefined) yield { path: full(fixed), ttlMs: undefined };
  else if (known !== undefined) yield { path: full(known.path), ttlMs: known.until - Date.now() };
  if (fixed !== undefined || known !== undefined) return;
  let best: Step | undefined;
  for await (best of id === undefined ? linked(root, deps, options) : recorded(id, deps, options)) {
    yield { path: full(best.path), ttlMs: best.ttlMs };
  }
  // The result is cached even with `nocache`, because it is as good as any other.
  if (best !== undefined) deps.cache?.set(key, best.path, best.ttlMs ?? 0);
}

/**
 * Returns the peer id in a text; undefined if the text may be a domain. @throws NodeError for a CID
 * that is not a peer id
 */
function nameIn(text: string): PeerId | undefined {
  try {
    return parsePeerId(text);
  } catch {
    const cid = cidIn(text);
    if (cid?.version !== 1 || cid.code !== dagPb) return undefined;
    const right = CID.createV1(libp2pKey, cid.multihash);
    throw new NodeError(
      "CID_NOT_A_PEER_ID",
      `peer ID represented as CIDv1 require libp2p-key multicodec: retry with /ipns/${right}`,
    );
  }
}

function cidIn(text: string): CID | undefined {
  try {
    return parseCid(text);
  } catch {
    return undefined;
  }
}

/** The result is not cached, because Node.js does not report how long a DNS response is valid. */
async function* linked(root: string, { lookUp }: ResolverDeps, { signal }: ResolveOptions): AsyncGenerator<Step> {
  if (!isDomain(root)) throw new NodeError("INVALID_PATH", `invalid IPNS root: ${quote(root)}`);
  const { path } = await resolveDnslink(root, lookUp, { depth: 1, signal });
  yield { path, ttlMs: undefined };
}

async function* recorded(id: PeerId, { records }: ResolverDeps, options: ResolveOptions): AsyncGenerator<Step> {
  for await (const { value, ttl, validity } of records(id, options)) {
    const left = Number((parseTimestamp(validity) ?? 0n) - timestampAfter(0));
    // A record without a TTL does not say how long it may be cached.
    yield { path: pathIn(value), ttlMs: ttl === 0n ? undefined : Math.min(Number(ttl), left) / NS_PER_MS };
  }
}

/**
 * Returns the path in the value of a record. Old records contain a bare multihash. @throws
 * NodeError for a value that is not a path
 */
function pathIn(value: Uint8Array): string {
  const [code, length] = value;
  if (code === sha256.code && length === value.length - 2) return `/ipfs/${castCid(value)}`;
  return fullPath(Buffer.from(value).toString());
}
