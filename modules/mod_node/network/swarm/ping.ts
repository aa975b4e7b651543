/**
 * Echoes, both ways. A stream is used for as many as the asker likes, and the answering side ends it after a minute of
 * silence, as the reference does: libp2p's own service asks for a stream each, and ends those of others after ten
 * seconds.
 */
import { randomBytes } from "node:crypto";
import { type Connection, type Stream, serviceCapabilities } from "@libp2p/interface";
import type { Ping, PingComponents } from "@libp2p/ping";
import type { PeerId } from "../../formats/peer_id.ts";
import { raceSignal } from "../../util/async/abortable.ts";
import { NodeError } from "../../util/errors.ts";
import { LRU } from "../../util/lru.ts";
import { drained } from "./stream_backpressure.ts";

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
  readonly #known = new LRU<string, number>(keptPeers);

  record(peer: PeerId, milliseconds: number): void {
    const id = peer.toString();
    const before = this.#known.peek(id);
    this.#known.set(id, before === undefined ? milliseconds : before + smoothing * (milliseconds - before));
  }

  /** Milliseconds; undefined where nothing was measured. */
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

/** One stream for echoes, which come back in their order. Those who ask the same peer meanwhile share it. */
export class PingStream {
  readonly #stream: Stream;
  readonly #waiting: Waiting[] = [];
  #users = 1;

  constructor(stream: Stream) {
    this.#stream = stream;
    this.#read().then(
      () => this.#end(new NodeError("stream reset")),
      (reason) => this.#end(reason),
    );
  }

  /** One more who closes it; false when it has ended. */
  share(): boolean {
    if (this.#users === 0) return false;
    this.#users += 1;
    return true;
  }

  /** Milliseconds there and back. @throws NodeError of an echo that is not what was sent; whatever ends the stream */
  async ping(signal?: AbortSignal): Promise<number> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const stop = () => reject(signal?.reason instanceof Error ? signal.reason : new Error("aborted"));
    signal?.addEventListener("abort", stop, { once: true });
    try {
      const sent = randomBytes(echoLength);
      const start = performance.now();
      this.#stream.send(sent);
      this.#waiting.push({ sent, start, resolve, reject });
      return await promise;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** The stream ends with the last of its users. */
  close(): void {
    if (this.#users === 1) this.#end(new Error("no more echoes are wanted"));
    else if (this.#users > 1) this.#users -= 1;
  }

  async #read(): Promise<void> {
    let got = Buffer.alloc(0);
    for await (const chunk of this.#stream) {
      const bytes = chunk.subarray();
      got = got.length === 0 ? Buffer.from(bytes) : Buffer.concat([got, bytes]);
      for (; got.length >= echoLength; got = got.subarray(echoLength)) this.#answered(got.subarray(0, echoLength));
    }
  }

  #answered(got: Buffer): void {
    const first = this.#waiting.shift();
    if (first?.sent.equals(got)) first.resolve(performance.now() - first.start);
    else first?.reject(new NodeError("ping packet was incorrect"));
  }

  #end(reason: Error): void {
    this.#users = 0;
    for (const { reject } of this.#waiting.splice(0)) reject(reason);
    this.#stream.abort(reason);
  }
}

interface Opening {
  readonly echo: Promise<PingStream>;
  /** Of who asked first. */
  readonly signal: AbortSignal | undefined;
}

/** To be given to libp2p as its service `ping`. */
export class PingService implements Ping {
  readonly [serviceCapabilities] = ["@libp2p/ping"];
  readonly latencies = new Latencies();
  readonly #components: PingComponents;
  readonly #echoes = new Map<string, Opening>();

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

  /** Connects when there is no connection. One stream for each peer: some refuse a second. */
  async open(peer: Target, options: Options = {}): Promise<PingStream> {
    const name = String(peer);
    for (;;) {
      const known = this.#echoes.get(name);
      if (known === undefined) return this.#begin(name, peer, options);
      try {
        const shared = await raceSignal(known.echo, options.signal);
        if (shared.share()) return shared;
        this.#forget(name, known);
      } catch (error) {
        // That who asked first has left is no matter to the others.
        if (options.signal?.aborted === true || known.signal?.aborted !== true) throw error;
      }
    }
  }

  #begin(name: string, peer: Target, options: Options): Promise<PingStream> {
    const { connectionManager } = this.#components;
    const stream = connectionManager.openStream(peer, pingProtocol, { runOnLimitedConnection: true, ...options });
    const echo = stream.then((opened) => {
      opened.addEventListener("close", () => this.#forget(name, opening), { once: true });
      return new PingStream(opened);
    });
    const opening: Opening = { echo, signal: options.signal };
    this.#echoes.set(name, opening);
    echo.catch(() => this.#forget(name, opening));
    return echo;
  }

  #forget(name: string, opening: Opening): void {
    if (this.#echoes.get(name) === opening) this.#echoes.delete(name);
  }

  /** One echo; milliseconds. */
  async ping(peer: Target, options: Options = {}): Promise<number> {
    const echo = await this.open(peer, options);
    try {
      return await echo.ping(options.signal);
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
      if (!stream.send(chunk)) await drained(stream);
    }
    await stream.close();
  } catch (error) {
    stream.abort(error as Error);
  } finally {
    clearTimeout(silence);
  }
}
