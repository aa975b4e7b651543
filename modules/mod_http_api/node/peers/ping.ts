/**
 * Echoes, both ways. A stream is used for as many as the asker likes, and the answering side ends it after a minute of
 * silence, as the reference does: libp2p's own service asks for a stream each, and ends those of others after ten
 * seconds.
 */
import { randomBytes } from "node:crypto";
import { type Connection, type Stream, serviceCapabilities } from "@libp2p/interface";
import type { Ping, PingComponents } from "@libp2p/ping";
import { NodeError } from "../errors.ts";
import type { PeerId } from "../peer_id.ts";

export const pingProtocol = "/ipfs/ping/1.0.0";

const echoLength = 32;
/** Milliseconds. */
const mostSilence = 60_000;
/** Of one peer, on one connection, at a time. */
const mostStreams = 16;
/** Of the moving average. */
const smoothing = 0.1;
const keptPeers = 4096;

/** Round trips to peers, as a moving average. */
export class Latencies {
  readonly #known = new Map<string, number>();

  record(peer: PeerId, milliseconds: number): void {
    const id = peer.toString();
    const before = this.#known.get(id);
    this.#known.delete(id);
    this.#known.set(id, before === undefined ? milliseconds : before + smoothing * (milliseconds - before));
    if (this.#known.size > keptPeers) this.#known.delete(this.#known.keys().next().value as string);
  }

  /** Milliseconds; undefined where nothing was measured. */
  of(peer: PeerId): number | undefined {
    return this.#known.get(peer.toString());
  }
}

type Target = Parameters<Ping["ping"]>[0];
type Options = NonNullable<Parameters<Ping["ping"]>[1]>;

/** One stream for echoes. */
export class Echo {
  readonly #stream: Stream;
  readonly #chunks: AsyncIterator<Uint8Array | { subarray(): Uint8Array }>;

  constructor(stream: Stream) {
    this.#stream = stream;
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** Milliseconds there and back. @throws NodeError of an echo that is not what was sent; whatever ends the stream */
  async once(signal?: AbortSignal): Promise<number> {
    signal?.throwIfAborted();
    const stop = () => this.#stream.abort(signal?.reason instanceof Error ? signal.reason : new Error("aborted"));
    signal?.addEventListener("abort", stop, { once: true });
    try {
      const sent = randomBytes(echoLength);
      const start = performance.now();
      this.#stream.send(sent);
      const got = await this.#read();
      const milliseconds = performance.now() - start;
      if (!sent.equals(got)) throw new NodeError("ping packet was incorrect");
      return milliseconds;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  async #read(): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    for (let length = 0; length < echoLength; ) {
      const { value, done } = await this.#chunks.next();
      if (done === true) throw new NodeError("stream reset");
      const bytes = value.subarray();
      parts.push(bytes);
      length += bytes.length;
    }
    return Buffer.concat(parts);
  }

  close(): void {
    this.#stream.abort(new Error("no more echoes are wanted"));
  }
}

/** To be given to libp2p as its service `ping`. */
export class PingService implements Ping {
  readonly [serviceCapabilities] = ["@libp2p/ping"];
  readonly latencies = new Latencies();
  readonly #components: PingComponents;

  constructor(components: PingComponents) {
    this.#components = components;
  }

  async start(): Promise<void> {
    await this.#components.registrar.handle(pingProtocol, answer, {
      maxInboundStreams: mostStreams,
      maxOutboundStreams: mostStreams,
      runOnLimitedConnection: true,
    });
  }

  async stop(): Promise<void> {
    await this.#components.registrar.unhandle(pingProtocol);
  }

  /** Connects when there is no connection. */
  async open(peer: Target, options: Options = {}): Promise<Echo> {
    const { connectionManager } = this.#components;
    return new Echo(
      await connectionManager.openStream(peer, pingProtocol, { runOnLimitedConnection: true, ...options }),
    );
  }

  /** One echo on a stream of its own; milliseconds. */
  async ping(peer: Target, options: Options = {}): Promise<number> {
    const echo = await this.open(peer, options);
    try {
      return await echo.once(options.signal);
    } finally {
      echo.close();
    }
  }
}

async function answer(stream: Stream, _connection: Connection): Promise<void> {
  const silence = setTimeout(() => stream.abort(new Error("nothing to echo for a minute")), mostSilence);
  try {
    for await (const chunk of stream) {
      silence.refresh();
      if (!stream.send(chunk)) await stream.onDrain();
    }
    await stream.close();
  } catch (error) {
    stream.abort(error as Error);
  } finally {
    clearTimeout(silence);
  }
}
