/**
 * Manages streams to peers: reopens broken streams, splits long RPCs, and waits for streams that
 * are being opened and for peers that read slowly.
 */
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import type { Connection, Libp2p, PeerId, Stream, StreamMiddleware } from "@libp2p/interface";
import { drained } from "../swarm/stream_backpressure.ts";
import { MAX_RPC_SIZE } from "./limits.ts";
import { splitRpc } from "./message.ts";

/** Milliseconds until a broken stream is reopened. */
const REOPEN_AFTER_MS = 2000;
/**
 * Milliseconds that publishing waits for a peer that reads nothing; after that, its stream is
 * aborted.
 */
const DRAIN_TIMEOUT_MS = 5000;
/**
 * Milliseconds that publishing waits for the stream to a newly connected peer, once per connection.
 */
const OPEN_TIMEOUT_MS = 1000;
/** Maximum size of an RPC with its length prefix. */
const MAX_FRAME_SIZE = MAX_RPC_SIZE + 3;

export interface OutboundDeps {
  /** Returns the protocols of the router. */
  readonly protocols: () => readonly string[];
  /** Makes the router open a stream to a peer; undefined if that is not possible. */
  readonly reopen: ((id: PeerId, connection: Connection) => void) | undefined;
}

export class Outbound {
  readonly #libp2p: Pick<Libp2p, "getConnections">;
  readonly #deps: OutboundDeps;
  readonly #reopening = new Set<NodeJS.Timeout>();
  /** Number of open streams by peer. */
  readonly #open = new Map<string, number>();
  /** Resolves when the next stream opens. */
  #opened = Promise.withResolvers<void>();
  /** Connections on which no stream opened in time; they are not waited for again. */
  readonly #silent = new WeakSet<Connection>();

  constructor(libp2p: Pick<Libp2p, "getConnections">, deps: OutboundDeps) {
    this.#libp2p = libp2p;
    this.#deps = deps;
  }

  /** Must be registered for the protocols of the router. */
  readonly middleware: StreamMiddleware = (stream, connection, next) => {
    if (stream.direction === "outbound") this.#add(stream, connection);
    next(stream, connection);
  };

  #add(stream: Stream, connection: Connection): void {
    const id = connection.remotePeer.toString();
    splitLongRpcs(stream);
    this.#count(id, 1);
    this.#opened.resolve();
    this.#opened = Promise.withResolvers();
    stream.addEventListener("close", ({ error }) => {
      this.#count(id, -1);
      if (error !== undefined) this.#reopen(connection);
    });
  }

  #count(id: string, change: 1 | -1): void {
    const count = (this.#open.get(id) ?? 0) + change;
    if (count === 0) this.#open.delete(id);
    else this.#open.set(id, count);
  }

  /**
   * Resolves when there is a stream to each of the peers, or after a timeout: messages that are
   * sent earlier are lost.
   */
  async ready(peers: readonly PeerId[]): Promise<void> {
    if (this.#missing(peers).length === 0) return;
    const ending = new AbortController();
    const late = delay(OPEN_TIMEOUT_MS, true, { signal: ending.signal }).catch(() => true);
    let isLate = false;
    while (!isLate && this.#missing(peers).length > 0)
      isLate = (await Promise.race([late, this.#opened.promise])) === true;
    ending.abort();
    for (const connection of this.#missing(peers)) this.#silent.add(connection);
    // The router is notified of a stream after its middleware.
    await nextTurn();
  }

  #missing(peers: readonly PeerId[]): readonly Connection[] {
    return peers
      .filter((id) => !this.#open.has(id.toString()))
      .flatMap((id) => this.#libp2p.getConnections(id))
      .filter((connection) => !this.#silent.has(connection));
  }

  #reopen(connection: Connection): void {
    const { reopen } = this.#deps;
    if (reopen === undefined || connection.status !== "open") return;
    const timer = setTimeout(() => {
      this.#reopening.delete(timer);
      reopen(connection.remotePeer, connection);
    }, REOPEN_AFTER_MS).unref();
    this.#reopening.add(timer);
  }

  /** Resolves when the streams to the peers accept more data, or after a timeout. */
  async drained(peers: readonly PeerId[]): Promise<void> {
    const full = peers
      .flatMap((id) => this.#libp2p.getConnections(id))
      .flatMap(({ streams }) => streams.filter(this.#isFull));
    if (full.length === 0) return;
    const signal = AbortSignal.timeout(DRAIN_TIMEOUT_MS);
    await Promise.all(
      full.map((stream) =>
        drained(stream, signal).catch(() =>
          stream.abort(new Error("the peer does not read the messages that it subscribed to")),
        ),
      ),
    );
  }

  readonly #isFull = ({ direction, protocol, writableNeedsDrain }: Stream): boolean =>
    writableNeedsDrain && direction === "outbound" && this.#deps.protocols().includes(protocol);

  stop(): void {
    for (const timer of this.#reopening) clearTimeout(timer);
    this.#reopening.clear();
  }
}

/** Splits RPCs that are too long when they are sent. */
function splitLongRpcs(stream: Stream): void {
  const { send } = stream;
  stream.send = (data) => {
    if (data.byteLength <= MAX_FRAME_SIZE) return send.call(stream, data);
    return splitRpc(data instanceof Uint8Array ? data : data.subarray())
      .map((part) => send.call(stream, part))
      .every(Boolean);
  };
}
