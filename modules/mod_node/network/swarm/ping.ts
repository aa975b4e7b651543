/**
 * The ping protocol of libp2p. As in go-ipfs, a stream carries any number of pings, and the
 * responding side closes it after a minute of silence. libp2p's own service opens a stream for each
 * ping, and closes those of peers after ten seconds.
 */
import { randomBytes } from "node:crypto";
import { type Connection, type Stream, serviceCapabilities } from "@libp2p/interface";
import type { Ping, PingComponents } from "@libp2p/ping";
import type { PeerId } from "../../formats/peer_id.ts";
import { raceSignal } from "../../util/async/abortable.ts";
import { failure } from "../../util/errors.ts";
import { LRU } from "../../util/lru.ts";
import { drained } from "./stream_backpressure.ts";

export const pingProtocol = "/ipfs/ping/1.0.0";

const PAYLOAD_SIZE = 32;
/** Milliseconds without a ping after which a stream of a peer is closed. */
const IDLE_TIMEOUT_MS = 60_000;
/** Maximum number of streams on one connection. */
const MAX_STREAMS = 16;
/** Weight of a new value in the moving average. */
const SMOOTHING = 0.1;
const MAX_PEERS = 4096;

/** Round-trip times of peers, as moving averages. */
class Latencies {
  readonly #known = new LRU<string, number>(MAX_PEERS);

  record(peer: PeerId, milliseconds: number): void {
    const id = peer.toString();
    const before = this.#known.peek(id);
    this.#known.set(id, before === undefined ? milliseconds : before + SMOOTHING * (milliseconds - before));
  }

  /** Returns milliseconds; undefined for a peer that was not pinged. */
  of(peer: PeerId): number | undefined {
    return this.#known.peek(peer.toString());
  }
}

type Target = Parameters<Ping["ping"]>[0];
type Options = NonNullable<Parameters<Ping["ping"]>[1]>;

interface Waiting {
  readonly sent: Buffer;
  readonly start: number;
  resolve(milliseconds: number): void;
  reject(reason: unknown): void;
}

/**
 * A stream for pings, which the peer echoes in order. Concurrent users that ping the same peer
 * share it.
 */
export class PingStream {
  readonly #stream: Stream;
  readonly #waiting: Waiting[] = [];
  #users = 1;

  constructor(stream: Stream) {
    this.#stream = stream;
    this.#read().then(
      () => this.#end(failure("PEER_UNREACHABLE", { reason: "stream reset" })),
      (reason) => this.#end(reason),
    );
  }

  /** Adds a user, which has to close the stream as well; returns false if it has ended. */
  share(): boolean {
    if (this.#users === 0) return false;
    this.#users += 1;
    return true;
  }

  /**
   * Resolves to the round-trip time in milliseconds. @throws NodeError for a wrong echo; the error
   * that ended the stream
   */
  async ping(signal?: AbortSignal): Promise<number> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const stop = () => reject(signal?.reason instanceof Error ? signal.reason : new Error("aborted"));
    signal?.addEventListener("abort", stop, { once: true });
    try {
      const sent = randomBytes(PAYLOAD_SIZE);
      const start = performance.now();
      this.#stream.send(sent);
      this.#waiting.push({ sent, start, resolve, reject });
      return await promise;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Removes a user; the stream ends with the last one. */
  close(): void {
    if (this.#users === 1) this.#end(new Error("no more pings are sent"));
    else if (this.#users > 1) this.#users -= 1;
  }

  async #read(): Promise<void> {
    let got = Buffer.alloc(0);
    for await (const chunk of this.#stream) {
      const bytes = chunk.subarray();
      got = got.length === 0 ? Buffer.from(bytes) : Buffer.concat([got, bytes]);
      for (; got.length >= PAYLOAD_SIZE; got = got.subarray(PAYLOAD_SIZE)) this.#echoed(got.subarray(0, PAYLOAD_SIZE));
    }
  }

  #echoed(got: Buffer): void {
    const first = this.#waiting.shift();
    if (first?.sent.equals(got)) first.resolve(performance.now() - first.start);
    else first?.reject(failure("PEER_UNREACHABLE", { reason: "ping packet was incorrect" }));
  }

  #end(reason: Error): void {
    this.#users = 0;
    for (const { reject } of this.#waiting.splice(0)) reject(reason);
    this.#stream.abort(reason);
  }
}

interface OpeningStream {
  readonly opened: Promise<PingStream>;
  /** Signal of the caller that opened the stream. */
  readonly signal: AbortSignal | undefined;
}

/** libp2p's service `ping`. */
export class PingService implements Ping {
  readonly [serviceCapabilities] = ["@libp2p/ping"];
  readonly latencies = new Latencies();
  readonly #components: PingComponents;
  readonly #streams = new Map<string, OpeningStream>();

  constructor(components: PingComponents) {
    this.#components = components;
  }

  async start(): Promise<void> {
    await this.#components.registrar.handle(pingProtocol, echo, {
      maxInboundStreams: MAX_STREAMS,
      maxOutboundStreams: MAX_STREAMS,
      runOnLimitedConnection: true,
    });
  }

  async stop(): Promise<void> {
    await this.#components.registrar.unhandle(pingProtocol);
  }

  /**
   * Opens a stream, connecting if necessary. Each peer has one stream, because some peers refuse a
   * second.
   */
  async open(peer: Target, options: Options = {}): Promise<PingStream> {
    const name = String(peer);
    for (;;) {
      const known = this.#streams.get(name);
      if (known === undefined) return this.#begin(name, peer, options);
      try {
        const shared = await raceSignal(known.opened, options.signal);
        if (shared.share()) return shared;
        this.#forget(name, known);
      } catch (error) {
        // If the caller that opened the stream has aborted, another one opens it again.
        if (options.signal?.aborted === true || known.signal?.aborted !== true) throw error;
      }
    }
  }

  #begin(name: string, peer: Target, options: Options): Promise<PingStream> {
    const { connectionManager } = this.#components;
    const stream = connectionManager.openStream(peer, pingProtocol, { runOnLimitedConnection: true, ...options });
    const opened = stream.then((each) => {
      each.addEventListener("close", () => this.#forget(name, opening), { once: true });
      return new PingStream(each);
    });
    const opening: OpeningStream = { opened, signal: options.signal };
    this.#streams.set(name, opening);
    opened.catch(() => this.#forget(name, opening));
    return opened;
  }

  #forget(name: string, opening: OpeningStream): void {
    if (this.#streams.get(name) === opening) this.#streams.delete(name);
  }

  /** Resolves to the time of one round trip, in milliseconds. */
  async ping(peer: Target, options: Options = {}): Promise<number> {
    const stream = await this.open(peer, options);
    try {
      return await stream.ping(options.signal);
    } finally {
      stream.close();
    }
  }
}

async function echo(stream: Stream, _connection: Connection): Promise<void> {
  const idle = setTimeout(() => stream.abort(new Error("no ping arrived for a minute")), IDLE_TIMEOUT_MS);
  try {
    for await (const chunk of stream) {
      idle.refresh();
      if (!stream.send(chunk)) await drained(stream);
    }
    await stream.close();
  } catch (error) {
    stream.abort(error as Error);
  } finally {
    clearTimeout(idle);
  }
}
