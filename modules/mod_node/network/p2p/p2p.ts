/**
 * Implements the `p2p` commands, which forward streams of peers to local sockets, and local sockets
 * to peers.
 */
import type { Socket } from "node:net";
import type { Connection, Libp2p, PeerId, Stream } from "@libp2p/interface";
import type { Multiaddr } from "@multiformats/multiaddr";
import { failure, NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { addressText } from "../swarm/multiaddr.ts";
import type { NamedPeer } from "../swarm/resolve_peers.ts";
import { allowBuffering, pause, resume } from "../swarm/stream_backpressure.ts";
import type { Swarm } from "../swarm/swarm.ts";
import { connectTo, type LocalListener, listenAt, originOf, requireTarget } from "./endpoint.ts";
import { resetSocket, splice } from "./splice.ts";
import { StreamDuplex } from "./stream_duplex.ts";

export interface P2pDeps {
  readonly libp2p: Pick<Libp2p, "handle" | "unhandle" | "dialProtocol" | "peerId" | "peerStore">;
  readonly swarm: Pick<Swarm, "connect">;
  readonly log: NodeLog;
}

export interface ForwardOptions {
  /** Whether to allow protocol names outside of `/x/`. */
  readonly custom: boolean;
}

export interface ListenOptions extends ForwardOptions {
  /** Whether to send the peer's id first, on a line of its own. */
  readonly reportPeer: boolean;
}

/** A listener as `p2p ls` shows it: addresses as multiaddrs, peers as `/p2p/<id>`. */
export interface ListenerInfo {
  readonly protocol: string;
  readonly listen: string;
  readonly target: string;
}

/** An open stream. */
export interface StreamInfo {
  readonly id: bigint;
  readonly protocol: string;
  readonly origin: string;
  readonly target: string;
}

/** Selects the listeners that match all given fields. */
export interface ListenerFilter {
  readonly protocol?: string | undefined;
  readonly listen?: Multiaddr | undefined;
  readonly target?: Multiaddr | undefined;
}

interface Listener extends ListenerInfo {
  close(): void;
}

interface OpenStream extends StreamInfo {
  reset(): void;
}

/** Timeout in milliseconds for connecting to the other end. */
const CONNECT_TIMEOUT_MS = 30_000;
/** Maximum number of streams of one protocol on one connection; libp2p refuses more. */
const MAX_STREAMS = 1024;
const NAMESPACE = "/x/";

export class P2p {
  readonly #libp2p: P2pDeps["libp2p"];
  readonly #swarm: P2pDeps["swarm"];
  readonly #log: NodeLog;
  readonly #forwards = new Set<Listener>();
  readonly #listeners = new Map<string, Listener>();
  readonly #open = new Map<bigint, OpenStream>();
  #next = 0n;
  readonly #closing = new AbortController();

  constructor({ libp2p, swarm, log }: P2pDeps) {
    this.#libp2p = libp2p;
    this.#swarm = swarm;
    this.#log = log;
  }

  /**
   * Announces that this node accepts streams below `/x/`. Protocols without a listener are refused.
   */
  async start(): Promise<void> {
    await this.#libp2p.handle(NAMESPACE, (stream) => stream.abort(new Error("no such protocol")));
  }

  /** Accepts streams of a protocol from peers, and connects each to `target`. @throws NodeError */
  async listen(protocol: string, target: Multiaddr, { custom, reportPeer }: ListenOptions): Promise<ListenerInfo> {
    requireTarget(target);
    requireName(protocol, custom);
    if (this.#listeners.has(protocol)) throw failure("P2P_LISTENER_EXISTS");
    const taken = (stream: Stream, connection: Connection) =>
      void this.#onStream(stream, connection, { protocol, target, reportPeer });
    const listener = {
      protocol,
      listen: `/p2p/${this.#libp2p.peerId}`,
      target: addressText(target),
      close: () => void this.#libp2p.unhandle(protocol).catch(() => {}),
    };
    this.#listeners.set(protocol, listener);
    try {
      const options = { maxInboundStreams: MAX_STREAMS, maxOutboundStreams: MAX_STREAMS, runOnLimitedConnection: true };
      await this.#libp2p.handle(protocol, taken, options);
    } catch (error) {
      this.#listeners.delete(protocol);
      throw failure(
        "LISTEN_FAILED",
        { reason: `cannot listen for the protocol ${protocol}: ${(error as Error).message}` },
        error,
      );
    }
    this.#requireOpen(listener);
    return listener;
  }

  /**
   * Listens at a local address, and forwards its connections to the peer.
   *
   * @throws NodeError, also if it cannot listen
   */
  async forward(
    protocol: string,
    address: Multiaddr,
    peer: NamedPeer,
    { custom }: ForwardOptions,
  ): Promise<ListenerInfo> {
    requireName(protocol, custom);
    const target = `/p2p/${peer.id}`;
    let local: LocalListener;
    try {
      if (peer.addresses.length > 0) await this.#libp2p.peerStore.merge(peer.id, { multiaddrs: [...peer.addresses] });
      local = await listenAt(address, (socket) => void this.#dialPeer(socket, protocol, peer, target));
    } catch (error) {
      if (error instanceof NodeError) throw error;
      throw failure("LISTEN_FAILED", { reason: `listen ${addressText(address)}: ${(error as Error).message}` }, error);
    }
    this.#requireOpen(local);
    const listener = { protocol, listen: addressText(local.address), target, close: local.close };
    this.#forwards.add(listener);
    return listener;
  }

  /**
   * Opens a stream to a peer, connecting to it if necessary. The stream is reset when the signal
   * aborts, or when the node closes.
   *
   * @throws the error that prevented opening it
   */
  async open(id: PeerId, protocol: string, given: AbortSignal): Promise<StreamDuplex> {
    const signal = AbortSignal.any([given, this.#connectSignal()]);
    const stream = await this.#stream({ id, addresses: [] }, protocol, signal);
    const duplex = new StreamDuplex(stream);
    const number = this.#next++;
    const reset = () => void duplex.destroy();
    const names = { protocol, origin: `/p2p/${this.#libp2p.peerId}`, target: `/p2p/${id}` };
    this.#open.set(number, { id: number, ...names, reset });
    // The user of the duplex watches for its close event, and may be gone by then, so an error must
    // not be unhandled.
    duplex.on("error", () => undefined);
    duplex.once("close", () => void this.#open.delete(number));
    if (given.aborted || this.#closing.signal.aborted) duplex.destroy();
    else given.addEventListener("abort", reset, { once: true });
    return duplex;
  }

  /** Returns the local listeners, followed by those for streams of peers. */
  list(): readonly ListenerInfo[] {
    return [...this.#forwards, ...this.#listeners.values()];
  }

  /** Closes listeners, and returns their number; open streams continue. */
  close({ protocol, listen, target }: ListenerFilter): number {
    const here = listen && addressText(listen);
    const there = target && addressText(target);
    const matches = (each: ListenerInfo) =>
      (protocol === undefined || each.protocol === protocol) &&
      (here === undefined || each.listen === here) &&
      (there === undefined || each.target === there);
    const closing = [...this.#forwards, ...this.#listeners.values()].filter(matches);
    for (const listener of closing) {
      if (!this.#forwards.delete(listener)) this.#listeners.delete(listener.protocol);
      listener.close();
    }
    return closing.length;
  }

  streams(): readonly StreamInfo[] {
    return [...this.#open.values()];
  }

  /**
   * Resets both ends of a stream, or of all streams; an unknown id means that the stream has closed
   * already.
   */
  closeStreams(id?: bigint): void {
    for (const open of this.#open.values()) if (id === undefined || open.id === id) open.reset();
  }

  /** Closes all listeners and streams. */
  async stop(): Promise<void> {
    this.#closing.abort(new Error("the node is closed"));
    this.close({});
    this.closeStreams();
    await this.#libp2p.unhandle(NAMESPACE);
  }

  async #onStream(
    stream: Stream,
    { remotePeer }: Connection,
    { protocol, target, reportPeer }: { protocol: string; target: Multiaddr; reportPeer: boolean },
  ): Promise<void> {
    // Data that the peer sends before the target is connected stays in the window of the stream.
    allowBuffering(stream);
    pause(stream);
    let socket: Socket;
    try {
      socket = await connectTo(target, this.#connectSignal());
    } catch (error) {
      this.#logFailure(`no stream of ${remotePeer} to ${target}`, error);
      stream.abort(error as Error);
      return;
    }
    if (reportPeer) socket.write(`${remotePeer}\n`);
    await this.#splice(stream, socket, { protocol, origin: `/p2p/${remotePeer}`, target: addressText(target) });
  }

  async #stream({ id, addresses }: NamedPeer, protocol: string, signal: AbortSignal): Promise<Stream> {
    await this.#swarm.connect(id, addresses, signal);
    return this.#libp2p.dialProtocol(id, protocol, {
      signal,
      maxOutboundStreams: MAX_STREAMS,
      runOnLimitedConnection: true,
    });
  }

  async #dialPeer(socket: Socket, protocol: string, peer: NamedPeer, target: string): Promise<void> {
    socket.on("error", () => {});
    const origin = originOf(socket)?.toString() ?? "";
    let stream: Stream;
    try {
      stream = await this.#stream(peer, protocol, this.#connectSignal());
    } catch (error) {
      this.#logFailure(`no stream to ${peer.id} for ${protocol}`, error);
      socket.destroy();
      return;
    }
    await this.#splice(stream, socket, { protocol, origin, target });
  }

  async #splice(stream: Stream, socket: Socket, names: Omit<StreamInfo, "id">): Promise<void> {
    const id = this.#next++;
    const reset = () => {
      stream.abort(new Error("the stream was closed"));
      resetSocket(socket);
    };
    this.#open.set(id, { id, ...names, reset });
    try {
      const spliced = splice(stream, socket);
      if (this.#closing.signal.aborted) reset();
      resume(stream);
      socket.resume();
      await spliced;
    } finally {
      this.#open.delete(id);
    }
  }

  /** Closes again what was opened while the node closes. */
  #requireOpen(opened: { close(): void }): void {
    if (!this.#closing.signal.aborted) return;
    opened.close();
    throw this.#closing.signal.reason;
  }

  #connectSignal(): AbortSignal {
    return AbortSignal.any([this.#closing.signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)]);
  }

  #logFailure(what: string, error: unknown): void {
    this.#log.write("p2p-mount", "warn", `${what}: ${(error as Error).message}`);
  }
}

function requireName(protocol: string, custom: boolean): void {
  if (!custom && !protocol.startsWith(NAMESPACE))
    throw failure("ARGUMENT_INVALID", { reason: "protocol name must be within '/x/' namespace" });
}
