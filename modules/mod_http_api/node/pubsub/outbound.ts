/** What is said to peers: streams that are opened again, RPCs that are not too long, and waiting for who reads slowly. */
import type { Connection, Libp2p, PeerId, Stream, StreamMiddleware } from "@libp2p/interface";
import type { Router } from "./router.ts";
import { cut, longestRpc } from "./wire.ts";

/** Milliseconds until a stream that broke is opened again. */
const reopenAfter = 2000;
/** Milliseconds that whoever publishes waits for a peer that takes nothing; then its stream is given up. */
const patience = 5000;
/** Of the length before an RPC. */
const longestFrame = longestRpc + 3;

export class Outbound {
  readonly #libp2p: Pick<Libp2p, "getConnections">;
  readonly #router: Pick<Router, "onPeerConnected" | "protocols">;
  readonly #reopening = new Set<NodeJS.Timeout>();

  constructor(libp2p: Pick<Libp2p, "getConnections">, router: Pick<Router, "onPeerConnected" | "protocols">) {
    this.#libp2p = libp2p;
    this.#router = router;
  }

  /** To be used for the protocols of the router. */
  readonly middleware: StreamMiddleware = (stream, connection, next) => {
    if (stream.direction === "outbound") {
      cutting(stream);
      stream.addEventListener("close", ({ error }) => error && this.#reopen(connection));
    }
    next(stream, connection);
  };

  #reopen(connection: Connection): void {
    if (connection.status !== "open") return;
    const timer = setTimeout(() => {
      this.#reopening.delete(timer);
      this.#router.onPeerConnected(connection.remotePeer, connection);
    }, reopenAfter).unref();
    this.#reopening.add(timer);
  }

  /** Resolves when those peers have room for more, and after some seconds in any case. */
  async room(peers: readonly PeerId[]): Promise<void> {
    const full = peers
      .flatMap((id) => this.#libp2p.getConnections(id))
      .flatMap(({ streams }) => streams.filter(this.#isFull));
    if (full.length === 0) return;
    const signal = AbortSignal.timeout(patience);
    await Promise.all(
      full.map((stream) =>
        stream.onDrain({ signal }).catch(() => stream.abort(new Error("the peer does not read what it follows"))),
      ),
    );
  }

  readonly #isFull = ({ direction, protocol, writableNeedsDrain }: Stream): boolean =>
    writableNeedsDrain && direction === "outbound" && this.#router.protocols.includes(protocol);

  stop(): void {
    for (const timer of this.#reopening) clearTimeout(timer);
    this.#reopening.clear();
  }
}

/** Has what is too long for one RPC sent in several. */
function cutting(stream: Stream): void {
  const { send } = stream;
  stream.send = (data) => {
    if (data.byteLength <= longestFrame) return send.call(stream, data);
    return cut(data instanceof Uint8Array ? data : data.subarray())
      .map((part) => send.call(stream, part))
      .every(Boolean);
  };
}
