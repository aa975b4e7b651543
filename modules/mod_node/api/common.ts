/** Types and options that all groups of methods share. */
import type { Multiaddr } from "@multiformats/multiaddr";
import type { CID } from "multiformats/cid";
import type { PeerId } from "../formats/peer_id.ts";
import type { RecordOptions } from "../network/ipns/resolver.ts";
import { failure } from "../util/errors.ts";
import { parseDuration } from "../util/go/duration.ts";

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Milliseconds, or a duration such as `"1m30s"`, after which the call fails with
   * `context deadline exceeded`.
   */
  readonly timeout?: number | string | undefined;
  /** Do not use the network: blocks that are not stored on this machine count as not found. */
  readonly offline?: boolean | undefined;
}

/**
 * A CID, its text, or a path that begins with one: `CID`, `CID/a/b`, `/ipfs/CID/a`, `/ipns/NAME/a`.
 */
export type IpfsPath = CID | string;

/** A peer, by its id: as an object, or as text in any of its forms. */
export type PeerName = PeerId | string;

/** The address of a peer: a multiaddr, or its text. */
export type Address = Multiaddr | string;

/** Bytes of one file or block, whole or in pieces. */
export type ByteSource =
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | Iterable<Uint8Array>
  | AsyncIterable<Uint8Array>
  | ReadableStream<Uint8Array>;

export const pathText = (path: IpfsPath): string => (typeof path === "string" ? path : path.toString());

/** Returns a single value as a list. */
export const listOf = <T>(given: T | readonly T[]): readonly T[] =>
  Array.isArray(given) ? (given as readonly T[]) : [given as T];

/** Longest delay of a timer, in milliseconds. */
const MAX_TIMER = 2 ** 31 - 1;

/** The options that concern reading: `offline`, and a signal that also aborts at the timeout. */
export interface ReadOptions {
  readonly signal: AbortSignal | undefined;
  readonly offline: boolean | undefined;
}

/** @throws NodeError for an invalid timeout */
export function readOptions({ signal, timeout, offline }: CallOptions): ReadOptions {
  if (timeout === undefined) return { signal, offline };
  const milliseconds = typeof timeout === "number" ? timeout : parseDuration(timeout);
  const limit = new AbortController();
  const expire = () => limit.abort(failure("DEADLINE_EXCEEDED"));
  if (milliseconds <= 0) expire();
  else if (milliseconds <= MAX_TIMER) setTimeout(expire, milliseconds).unref();
  return { signal: signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]), offline };
}

/** Returns the signal that aborts the call; it is never aborted if the options have none. */
export const callSignal = (options: CallOptions): AbortSignal =>
  readOptions(options).signal ?? new AbortController().signal;

/** Options of calls that may have to resolve an IPNS name. */
export interface RecordCallOptions extends CallOptions {
  /** Number of records to request from the routing system. */
  readonly dhtRecordCount?: number | undefined;
  /** Timeout of that request: milliseconds, or a duration such as `"30s"`; 0 for no limit. */
  readonly dhtTimeout?: number | string | undefined;
}

/** @throws NodeError for an invalid or negative duration */
export function recordOptions({ dhtRecordCount: count, dhtTimeout, ...options }: RecordCallOptions): RecordOptions {
  const timeout = typeof dhtTimeout === "string" ? parseDuration(dhtTimeout) : dhtTimeout;
  if (timeout !== undefined && timeout < 0)
    throw failure("OPTION_INVALID", { reason: "DHT timeout value must be >= 0" });
  return { ...readOptions(options), count, timeout };
}

/** Returns any source of bytes as chunks; a source that is chunked already is returned as it is. */
export function piecesOf(source: ByteSource): AsyncIterable<Uint8Array> {
  if (typeof source !== "string" && Symbol.asyncIterator in source) return source;
  return cut(source);
}

async function* cut(source: Exclude<ByteSource, AsyncIterable<Uint8Array>>): AsyncGenerator<Uint8Array> {
  if (typeof source === "string") yield new TextEncoder().encode(source);
  else if (source instanceof Uint8Array) yield source;
  else if (source instanceof ArrayBuffer) yield new Uint8Array(source);
  else if (source instanceof Blob) yield* source.stream();
  else yield* source;
}

/**
 * When directories become sharded: if `Experimental.ShardingEnabled` of the configuration is on, or
 * by their size.
 */
export type ShardingMode = "by config" | "by size";
