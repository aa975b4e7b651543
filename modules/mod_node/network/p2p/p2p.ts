/** Streams to peers, mounted as local sockets (network section 12). */
import type { Socket } from "node:net";
import type { Connection, Libp2p, Stream } from "@libp2p/interface";
import type { Multiaddr } from "@multiformats/multiaddr";
import { NodeError } from "../../util/errors.ts";
import type { NodeLog } from "../../util/log.ts";
import { withPeer } from "../swarm/multiaddr.ts";
import type { NamedPeer } from "../swarm/resolve_peers.ts";
import { allowBuffering, pause, resume } from "../swarm/stream_backpressure.ts";
import { connectTo, type LocalListener, listenAt, originOf, requireTarget } from "./endpoint.ts";
import { resetSocket, splice } from "./splice.ts";

export interface P2pDeps {
  readonly libp2p: Pick<Libp2p, "handle" | "unhandle" | "dial" | "dialProtocol" | "peerId" | "peerStore">;
  readonly log: NodeLog;
}

export interface ForwardOptions {
  /** Names outside of `/x/` are allowed. */
  readonly custom: boolean;
}

export interface ListenOptions extends ForwardOptions {
  /** The peer's id is sent first, on a line of its own. */
  readonly reportPeer: boolean;
}

/** A listener as it is shown: addresses as multiaddresses, peers as `/p2p/<id>`. */
export interface ListenerInfo {
  readonly protocol: string;
  readonly listen: string;
  readonly target: string;
}

/** A stream that is open. */
export interface StreamInfo {
  readonly id: bigint;
  readonly protocol: string;
  readonly origin: string;
  readonly target: string;
}

/** Which listeners to close: all that agree with what is given. */
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

/** Milliseconds for the way to the other end. */
const CONNECT_TIMEOUT_MS = 30_000;
/** Streams of one protocol on one connection; those beyond are refused by libp2p. */
const MAX_STREAMS = 1024;
const NAMESPACE = "/x/";

export class P2p {
  readonly #libp2p: P2pDeps["libp2p"];
  readonly #log: NodeLog;
  readonly #forwards = new Set<Listener>();
  readonly #listeners = new Map<string, Listener>();
  readonly #open = new Map<bigint, OpenStream>();
  #next = 0n;
  readonly #closing = new AbortController();

  constructor({ libp2p, log }: P2pDeps) {
    this.#libp2p = libp2p;
    this.#log = log;
  }

  /** Others see that streams can be asked for here; names without a listener are refused. */
  async start(): Promise<void> {
    await this.#libp2p.handle(NAMESPACE, (stream) => stream.abort(new Error("no such protocol")));
  }

  /** Takes streams of that protocol from peers, and carries them to `target`. @throws NodeError */
  async listen(protocol: string, target: Multiaddr, { custom, reportPeer }: ListenOptions): Promise<void> {
    requireTarget(target);
    requireName(protocol, custom);
    if (this.#listeners.has(protocol)) throw new NodeError("listener already registered");
    const taken = (stream: Stream, connection: Connection) =>
      void this.#onStream(stream, connection, { protocol, target, reportPeer });
    const listener = {
      protocol,
      listen: `/p2p/${this.#libp2p.peerId}`,
      target: target.toString(),
      close: () => void this.#libp2p.unhandle(protocol).catch(() => {}),
    };
    this.#listeners.set(protocol, listener);
    try {
      const options = { maxInboundStreams: MAX_STREAMS, maxOutboundStreams: MAX_STREAMS, runOnLimitedConnection: true };
      await this.#libp2p.handle(protocol, taken, options);
    } catch (error) {
      this.#listeners.delete(protocol);
      throw new NodeError(`the protocol ${protocol} cannot be listened for: ${(error as Error).message}`, {
        cause: error,
      });
    }
    this.#requireOpen(listener);
  }

  /** Listens at `address` here, and carries connections to the peer. @throws NodeError, or of what cannot be listened on */
  async forward(protocol: string, address: Multiaddr, peer: NamedPeer, { custom }: ForwardOptions): Promise<void> {
    requireName(protocol, custom);
    const target = `/p2p/${peer.id}`;
    let local: LocalListener;
    try {
      if (peer.addresses.length > 0) await this.#libp2p.peerStore.merge(peer.id, { multiaddrs: [...peer.addresses] });
      local = await listenAt(address, (socket) => void this.#dialPeer(socket, protocol, peer, target));
    } catch (error) {
      if (error instanceof NodeError) throw error;
      throw new NodeError(`listen ${address}: ${(error as Error).message}`, { cause: error });
    }
    this.#requireOpen(local);
    this.#forwards.add({ protocol, listen: local.address.toString(), target, close: local.close });
  }

  /** Those that listen here, then those that listen for peers. */
  list(): readonly ListenerInfo[] {
    return [...this.#forwards, ...this.#listeners.values()];
  }

  /** How many were closed; streams that are open go on. */
  close({ protocol, listen, target }: ListenerFilter): number {
    const [here, there] = [listen?.toString(), target?.toString()];
    const agrees = (mount: ListenerInfo) =>
      (protocol === undefined || mount.protocol === protocol) &&
      (here === undefined || mount.listen === here) &&
      (there === undefined || mount.target === there);
    const doomed = [...this.#forwards, ...this.#listeners.values()].filter(agrees);
    for (const listener of doomed) {
      if (!this.#forwards.delete(listener)) this.#listeners.delete(listener.protocol);
      listener.close();
    }
    return doomed.length;
  }

  streams(): readonly StreamInfo[] {
    return [...this.#open.values()];
  }

  /** Resets both ends; of all streams without `id`. One that is not there is closed already. */
  closeStreams(id?: bigint): void {
    for (const open of this.#open.values()) if (id === undefined || open.id === id) open.reset();
  }

  /** Nothing is open afterwards. */
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
    // What comes before the target is there waits in the window of the stream.
    allowBuffering(stream);
    pause(stream);
    let socket: Socket;
    try {
      socket = await connectTo(target, this.#connectSignal());
    } catch (error) {
      this.#failed(`no stream of ${remotePeer} to ${target}`, error);
      stream.abort(error as Error);
      return;
    }
    if (reportPeer) socket.write(`${remotePeer}\n`);
    await this.#splice(stream, socket, { protocol, origin: `/p2p/${remotePeer}`, target: target.toString() });
  }

  async #dialPeer(socket: Socket, protocol: string, { id, addresses }: NamedPeer, target: string): Promise<void> {
    socket.on("error", () => {});
    const origin = originOf(socket)?.toString() ?? "";
    let stream: Stream;
    try {
      const signal = this.#connectSignal();
      // Whatever others have told of the peer meanwhile. Those that are known are dialled where these do not answer.
      const whole = addresses.map((address) => withPeer(address, id));
      if (whole.length > 0) await this.#libp2p.dial(whole, { signal }).catch(() => {});
      const options = { signal, maxOutboundStreams: MAX_STREAMS, runOnLimitedConnection: true };
      stream = await this.#libp2p.dialProtocol(id, protocol, options);
    } catch (error) {
      this.#failed(`no stream to ${id} for ${protocol}`, error);
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
      const carried = splice(stream, socket);
      if (this.#closing.signal.aborted) reset();
      resume(stream);
      socket.resume();
      await carried;
    } finally {
      this.#open.delete(id);
    }
  }

  /** What was opened while everything is closed goes again. */
  #requireOpen(opened: { close(): void }): void {
    if (!this.#closing.signal.aborted) return;
    opened.close();
    throw this.#closing.signal.reason;
  }

  #connectSignal(): AbortSignal {
    return AbortSignal.any([this.#closing.signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)]);
  }

  #failed(what: string, error: unknown): void {
    this.#log.write("p2p-mount", "warn", `${what}: ${(error as Error).message}`);
  }
}

function requireName(protocol: string, custom: boolean): void {
  if (!custom && !protocol.startsWith(NAMESPACE)) throw new NodeError("protocol name must be within '/x/' namespace");
}
