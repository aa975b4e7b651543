/** IPNS: names for content that can change. */
import { fullPath } from "../content/resolver/path.ts";
import { type PeerId, parsePeerId, peerIdEncoder } from "../formats/peer_id.ts";
import type { LowLevelNode } from "../low_level_node.ts";
import { DEFAULT_MAX_DEPTH } from "../network/ipns/dnslink.ts";
import type { IpnsPubsub } from "../network/ipns/ipns_pubsub.ts";
import { inspectRecord, type RecordInspection, recordFault } from "../network/ipns_record/inspect.ts";
import { readUpTo } from "../util/async/read_all.ts";
import { NodeError } from "../util/errors.ts";
import {
  type ByteSource,
  type CallOptions,
  type IpfsPath,
  type PeerName,
  pathText,
  piecesOf,
  type RecordCallOptions,
  reading,
  recordOptions,
} from "./common.ts";
import { pathOf } from "./dns.ts";
import { getRecord, MAX_RECORD_FILE, type NamePutOptions, putRecord, requireDelegates } from "./name_records.ts";
import { type NameRules, timesOf } from "./name_times.ts";

export type { NamePutOptions } from "./name_records.ts";
export type { NameRules } from "./name_times.ts";

export interface NamePublishOptions extends CallOptions {
  /** Check that the path can be resolved before publishing it; true by default. */
  readonly resolve?: boolean | undefined;
  /** Time for which the record is valid, such as `300s`, `1.5h` or `2h45m`, or milliseconds; a day by default. */
  readonly lifetime?: number | string | undefined;
  /** Time for which others may cache the record. */
  readonly ttl?: number | string | undefined;
  /** The key to sign with, by its name or its IPNS name; `self` by default. */
  readonly key?: string | undefined;
  /** While the node is offline, or connected to nobody, store the record on this machine instead of failing. */
  readonly allowOffline?: boolean | undefined;
  /** Publish over the routers of `Ipns.DelegatedPublishers`. */
  readonly allowDelegated?: boolean | undefined;
  /** Number of the record, above that of the last one. */
  readonly sequence?: bigint | number | undefined;
  /** Sign as older programs check it, too; true by default. */
  readonly v1compat?: boolean | undefined;
  /**
   * Whose rules hold; those of go-ipfs 0.9 by default. Kubo 0.43 has a lifetime of 48 hours and a TTL of 5 minutes,
   * refuses times that make no sense, takes it for no failure that nobody is connected, and leaves a record of the same
   * path that is valid for longer.
   */
  readonly rules?: NameRules | undefined;
  /** Encoding of the name: `b58mh`, or the multibase of a CID; `base36` by default. */
  readonly ipnsBase?: string | undefined;
}

export interface NamePublishResult {
  readonly name: string;
  /** The path in its full form. */
  readonly value: string;
}

export interface NameResolveOptions extends RecordCallOptions {
  /** Resolve repeatedly until the result is not a name; true by default. */
  readonly recursive?: boolean | undefined;
  /** Do not use cached results. */
  readonly nocache?: boolean | undefined;
  /** Yield every better result as it is found; true by default. Otherwise only the last one. */
  readonly stream?: boolean | undefined;
}

export interface NamePubsubSubsOptions extends CallOptions {
  /** Encoding of the names: `b58mh`, or the multibase of a CID; `base36` by default. */
  readonly ipnsBase?: string | undefined;
}

/** IPNS over pubsub. Except for `state`, its methods throw a NodeError while it is disabled. */
export interface NamePubsubApi {
  state(options?: CallOptions): Promise<{ readonly enabled: boolean }>;
  /** The subscribed names, as `/ipns/<name>`. */
  subs(options?: NamePubsubSubsOptions): Promise<readonly string[]>;
  /** Unsubscribes from a name. @throws NodeError while it is being resolved */
  cancel(name: PeerName, options?: CallOptions): Promise<{ readonly canceled: boolean }>;
}

export interface NameInspectOptions extends CallOptions {
  /** A name that the record is to be valid for. */
  readonly verify?: PeerName | undefined;
}

export interface NameInspectResult extends RecordInspection {
  /** With `verify`. */
  readonly validation?: {
    readonly name: PeerId;
    /** Why it is not valid for that name; undefined where it is. */
    readonly fault: string | undefined;
  };
  /** The bytes of the record. */
  readonly bytes: Uint8Array;
}

export interface NameApi {
  /** The best record of a name that is found. @throws NodeError when there is none */
  get(name: PeerName, options?: CallOptions): Promise<Uint8Array>;
  /**
   * Takes a record that was signed elsewhere: it is kept here, and handed to the peers closest to the name.
   *
   * @returns the path that it stands for; empty for bytes that are no record, which are taken with `force` and not kept
   * @throws NodeError for bytes that are no record of that name, and for one that is not after the one here
   */
  put(name: PeerName, record: ByteSource, options?: NamePutOptions): Promise<{ name: PeerId; value: string }>;
  /** What stands in a record. @throws NodeError for bytes that are no record, and for a name that is none */
  inspect(record: ByteSource, options?: NameInspectOptions): Promise<NameInspectResult>;
  /**
   * Makes the name of a key stand for a path. The record is kept here first: it stays when telling others fails. With
   * `offline` nobody is told.
   *
   * @throws NodeError of a path that is none or leads nowhere, of an unknown key, and when nobody could be told
   */
  publish(path: IpfsPath, options?: NamePublishOptions): Promise<NamePublishResult>;
  /**
   * Resolves a name, by default the node's own, and yields every better result as it is found.
   *
   * @throws NodeError if there is none
   */
  resolve(name?: PeerName, options?: NameResolveOptions): AsyncIterable<string>;
  readonly pubsub: NamePubsubApi;
}

const NAME_BASE = "base36";

export function nameApi(node: LowLevelNode): NameApi {
  return {
    async inspect(record, { verify } = {}) {
      const bytes = await readUpTo(piecesOf(record), MAX_RECORD_FILE);
      const inspection = inspectRecord(bytes);
      if (verify === undefined || verify === "") return { ...inspection, bytes };
      const name = parsePeerId(String(verify).replace(/^\/ipns\//, ""));
      return { ...inspection, bytes, validation: { name, fault: await recordFault(name, bytes) } };
    },
    get: (name, options) => getRecord(node, name, options),
    put: (name, record, options) => putRecord(node, name, record, options),
    async publish(
      value,
      { resolve = true, lifetime, ttl, key: keyName = "self", allowOffline, ipnsBase, rules = "0.9", ...options } = {},
    ) {
      const path = pathText(value);
      const how = reading(options);
      requireDelegates(node, { allowOffline, allowDelegated: options.allowDelegated });
      const encode = peerIdEncoder(ipnsBase ?? NAME_BASE);
      const times = timesOf(rules)(lifetime, ttl);
      if (resolve) await node.reader(how)((await node.resolve(path, how)).cid);
      // The content of the node's own names is then changed below /ipns only.
      if (await node.mounts.hasNames()) throw new NodeError("cannot manually publish while IPNS is mounted");
      if (!node.online && allowOffline !== true) {
        const delegates = " or `--allow-delegated` if Ipns.DelegatedPublishers are set up";
        const remedy = `pass \`--allow-offline\` to override${rules === "0.9" ? "" : delegates}`;
        throw new NodeError(`can't publish while offline: ${remedy}`);
      }
      fullPath(path);
      const key = await node.names.key(keyName);
      const { sequence, v1compat = true } = options;
      const published = await node.names.publish(key, path, {
        ...how,
        ...times,
        sequence: sequence === undefined ? undefined : BigInt(sequence),
        versions: v1compat ? "both" : "V2",
        keepBetter: rules !== "0.9",
        allowOffline: allowOffline === true || rules !== "0.9",
      });
      return { name: encode(key.id), value: published };
    },
    async *resolve(given, { recursive = true, nocache, stream = true, ...options } = {}) {
      const name = String(given ?? node.repo.identity.peerId);
      const how = { ...recordOptions(options), depth: recursive ? DEFAULT_MAX_DEPTH : 1, nocache };
      if (!stream) yield pathOf(await node.names.find(name, how), recursive);
      else for await (const found of node.names.search(name, how)) yield pathOf(found, recursive);
    },
    pubsub: namePubsubApi(node),
  };
}

function namePubsubApi(node: LowLevelNode): NamePubsubApi {
  const opened = async (): Promise<IpnsPubsub> => {
    const followed = await node.names.pubsub();
    if (followed === undefined) throw new NodeError("IPNS pubsub subsystem is not enabled", { kind: "client" });
    return followed;
  };
  return {
    state: async () => ({ enabled: (await node.names.pubsub()) !== undefined }),
    async subs({ ipnsBase = NAME_BASE } = {}) {
      const encode = peerIdEncoder(ipnsBase);
      return (await opened()).list().map((id) => `/ipns/${encode(id)}`);
    },
    async cancel(name) {
      const followed = await opened();
      return { canceled: followed.cancel(idOf(name)) };
    },
  };
}

function idOf(name: PeerName): PeerId {
  try {
    return parsePeerId(String(name).replace(/^\/ipns\//, ""));
  } catch (error) {
    throw new NodeError((error as Error).message, { kind: "client", cause: error });
  }
}
