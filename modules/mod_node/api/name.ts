/** IPNS: names for content that can change. */
import { fullPath } from "../content/resolver/path.ts";
import { type PeerId, parsePeerId, peerIdEncoder } from "../formats/peer_id.ts";
import { DEFAULT_MAX_DEPTH } from "../network/ipns/dnslink.ts";
import type { IpnsPubsub } from "../network/ipns/ipns_pubsub.ts";
import { inspectRecord, type RecordInspection, recordFault } from "../network/ipns_record/inspect.ts";
import type { LowLevelNode } from "../node/low_level_node.ts";
import { readUpTo } from "../util/async/read_all.ts";
import { failure, NodeError } from "../util/errors.ts";
import {
  type ByteSource,
  type CallOptions,
  type IpfsPath,
  type PeerName,
  pathText,
  piecesOf,
  type RecordCallOptions,
  readOptions,
  recordOptions,
} from "./common.ts";
import { pathOf } from "./dns.ts";
import { getRecord, MAX_RECORD_FILE, type NamePutOptions, putRecord, requirePublishers } from "./name_records.ts";
import { type NameRules, timesOf } from "./name_times.ts";

export type { NamePutOptions } from "./name_records.ts";
export type { NameRules } from "./name_times.ts";

export interface NamePublishOptions extends CallOptions {
  /** Check that the path can be resolved before publishing it; true by default. */
  readonly resolve?: boolean | undefined;
  /**
   * Time for which the record is valid, such as `300s`, `1.5h` or `2h45m`, or milliseconds; a day
   * by default.
   */
  readonly lifetime?: number | string | undefined;
  /** Time for which others may cache the record, in the same forms. */
  readonly ttl?: number | string | undefined;
  /** The key to sign with, by its name or its IPNS name; `self` by default. */
  readonly key?: string | undefined;
  /**
   * While the node is offline or has no connections, store the record on this machine instead of
   * failing.
   */
  readonly allowOffline?: boolean | undefined;
  /** Publish over the routers of `Ipns.DelegatedPublishers`. */
  readonly allowDelegated?: boolean | undefined;
  /** Sequence number of the record; it must be greater than that of the previous record. */
  readonly sequence?: bigint | number | undefined;
  /** Also sign in the way that older programs verify; true by default. */
  readonly v1compat?: boolean | undefined;
  /**
   * The rules to apply; those of go-ipfs 0.9 by default. Kubo 0.43 defaults to a lifetime of 48
   * hours and a TTL of 5 minutes, refuses invalid combinations of times, does not fail without
   * connections, and leaves an existing record in place that has the same path and is valid for
   * longer.
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

/** IPNS over pubsub. All methods except `state` throw a NodeError while it is disabled. */
export interface NamePubsubApi {
  state(options?: CallOptions): Promise<{ readonly enabled: boolean }>;
  /** Resolves to the subscribed names, as `/ipns/<name>`. */
  subs(options?: NamePubsubSubsOptions): Promise<readonly string[]>;
  /** Unsubscribes from a name. @throws NodeError while it is being resolved */
  cancel(name: PeerName, options?: CallOptions): Promise<{ readonly canceled: boolean }>;
}

export interface NameInspectOptions extends CallOptions {
  /** A name that the record should be valid for. */
  readonly verify?: PeerName | undefined;
}

export interface NameInspectResult extends RecordInspection {
  /** Present only with `verify`. */
  readonly validation?: {
    readonly name: PeerId;
    /** Why the record is not valid for that name; undefined if it is valid. */
    readonly fault: string | undefined;
  };
  /** The bytes of the record. */
  readonly bytes: Uint8Array;
}

export interface NameApi {
  /** Resolves to the best record of a name. @throws NodeError if none is found */
  get(name: PeerName, options?: CallOptions): Promise<Uint8Array>;
  /**
   * Accepts a record that was signed elsewhere: stores it locally, and sends it to the peers
   * closest to the name.
   *
   * @returns the path that the record contains; empty for bytes that are not a record, which are
   * accepted with `force` but not stored @throws NodeError for bytes that are not a record of that
   * name, and for a record that is not newer than the stored one
   */
  put(name: PeerName, record: ByteSource, options?: NamePutOptions): Promise<{ name: PeerId; value: string }>;
  /**
   * Resolves to the contents of a record. @throws NodeError for bytes that are not a record, and
   * for an invalid name
   */
  inspect(record: ByteSource, options?: NameInspectOptions): Promise<NameInspectResult>;
  /**
   * Makes the name of a key point to a path. The record is stored locally first, and stays stored
   * if publishing fails. With `offline` it is not published to the network.
   *
   * @throws NodeError for a path that is invalid or cannot be resolved, for an unknown key, and if
   * no peer could be reached
   */
  publish(path: IpfsPath, options?: NamePublishOptions): Promise<NamePublishResult>;
  /**
   * Resolves a name, by default the node's own, and yields every better result as it is found.
   *
   * @throws NodeError if there is no record
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
      const how = readOptions(options);
      requirePublishers(node, { allowOffline, allowDelegated: options.allowDelegated });
      const encode = peerIdEncoder(ipnsBase ?? NAME_BASE);
      const times = timesOf(rules)(lifetime, ttl);
      if (resolve) await node.reader(how)((await node.resolve(path, how)).cid);
      // While the names are mounted, their content may only be changed below /ipns.
      if (await node.mounts.hasNames()) throw failure("NAME_MOUNTED");
      if (!node.online && allowOffline !== true) {
        const delegates = " or `--allow-delegated` if Ipns.DelegatedPublishers are set up";
        const remedy = `pass \`--allow-offline\` to override${rules === "0.9" ? "" : delegates}`;
        throw failure("OFFLINE_NOT_ALLOWED", { reason: `can't publish while offline: ${remedy}` });
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
    if (followed === undefined) throw failure("IPNS_PUBSUB_OFF");
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
    throw new NodeError("INVALID_PEER_ID", (error as Error).message, { kind: "client", cause: error });
  }
}
