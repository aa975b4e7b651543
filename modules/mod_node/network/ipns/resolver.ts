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

/** How the records of a name are searched. */
export interface RecordOptions {
  readonly signal?: AbortSignal | undefined;
  /** Search on this machine only; domains are looked up all the same. */
  readonly offline?: boolean | undefined;
  /** Records that are enough, by default 16; 0 for all. */
  readonly count?: number | undefined;
  /** False: of the routing system the DHT alone is asked, and no router over HTTP. */
  readonly delegated?: boolean | undefined;
  /** Milliseconds after which the best record so far is taken, by default a minute; 0 for no limit. */
  readonly timeout?: number | undefined;
}

export interface ResolveOptions extends RecordOptions {
  /** Names that are followed, by default 32. */
  readonly depth?: number | undefined;
  /** Take nothing from the cache. */
  readonly nocache?: boolean | undefined;
}

export interface ResolverDeps {
  readonly cache: NameCache | undefined;
  /** Valid records of a name, each better than the ones before. */
  readonly records: (name: PeerId, options: RecordOptions) => AsyncIterable<IpnsRecord>;
  readonly lookUp: LookupTxt;
  /** Throws for a name that must not be resolved: denylists have it. */
  readonly requireServed?: ((name: string) => void) | undefined;
  /** Paths by name, from IPFS_NS_MAP: they win over everything. */
  readonly fixed: ReadonlyMap<string, string>;
}

const IPNS_PREFIX = "/ipns/";
const NS_PER_MS = 1e6;

/** Where one step leads. */
interface Step {
  readonly path: string;
  /** Milliseconds for which it may be cached; undefined where nobody says it. */
  readonly ttlMs: number | undefined;
}

/**
 * The paths that a name resolves to, each better than the ones before; names in them are followed. A path below `name`
 * is appended to each result. None when nothing is found.
 *
 * @throws NodeError in the words of go-ipfs
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
  // With `nocache`, too: the result is as good as any other.
  if (best !== undefined) deps.cache?.set(key, best.path, best.ttlMs ?? 0);
}

/** The peer id in a text; undefined when it may be a domain. @throws NodeError for a CID that is no peer id */
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

/** Not cached: Node does not tell how long a DNS answer is valid. */
async function* linked(root: string, { lookUp }: ResolverDeps, { signal }: ResolveOptions): AsyncGenerator<Step> {
  if (!isDomain(root)) throw new NodeError(`invalid IPNS root: ${quote(root)}`, { code: "INVALID_PATH" });
  const { path } = await resolveDnslink(root, lookUp, { depth: 1, signal });
  yield { path, ttlMs: undefined };
}

async function* recorded(id: PeerId, { records }: ResolverDeps, options: ResolveOptions): AsyncGenerator<Step> {
  for await (const { value, ttl, validity } of records(id, options)) {
    const left = Number((parseTimestamp(validity) ?? 0n) - timestampAfter(0));
    // Without a time to live, a record does not say for how long it stands.
    yield { path: pathIn(value), ttlMs: ttl === 0n ? undefined : Math.min(Number(ttl), left) / NS_PER_MS };
  }
}

/** Old records hold a bare multihash. @throws NodeError for a value that is no path */
function pathIn(value: Uint8Array): string {
  const [code, length] = value;
  if (code === sha256.code && length === value.length - 2) return `/ipfs/${castCid(value)}`;
  return fullPath(Buffer.from(value).toString());
}
