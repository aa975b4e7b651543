/** What peers say, read RPC by RPC in their order, and no faster than it is dealt with. */
import type { Connection, PeerId, Stream } from "@libp2p/interface";
import { FrameReader } from "../../formats/protobuf/frame_reader.ts";
import { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { allowBuffering, pause, resume } from "../swarm/stream_backpressure.ts";
import { MAX_RPC_SIZE } from "./limits.ts";
import type { Router } from "./router.ts";
import { TokenBucket } from "./token_bucket.ts";

/** Streams of one peer: more than the reference opens while two connections cross. */
const mostStreams = 4;
/** What a message costs beside its bytes: it is checked, and its id is kept for a while. */
const messageCost = 2048;
/**
 * Bytes that a peer may say at once, and in a second. What was said is kept for some seconds for others who ask for it,
 * so that this bounds the memory that a peer can take.
 */
const pace = { burst: 16 * 1024 * 1024, perSecond: 8 * 1024 * 1024 };

export interface InboundDeps {
  readonly router: Pick<Router, "onPeerConnected" | "decodeRpc" | "handleReceivedRpc">;
  /** Messages under other topics are passed over, unread. */
  isSubscribed(topic: string): boolean;
}

export class Inbound {
  readonly #deps: InboundDeps;
  readonly #streams = new Map<string, Stream[]>();

  constructor(parts: InboundDeps) {
    this.#deps = parts;
  }

  /** Reads a stream until it ends: at its peer's will, or at an RPC that is too long or makes no sense. */
  add(stream: Stream, connection: Connection): void {
    const { remotePeer } = connection;
    this.#deps.router.onPeerConnected(remotePeer, connection);
    this.#keep(remotePeer.toString(), stream);
    allowBuffering(stream);
    const frames = new FrameReader(MAX_RPC_SIZE, new BufferPool());
    const own = new TokenBucket(pace);
    stream.addEventListener("message", ({ data }) => void this.#read(stream, remotePeer, frames.read(data), own));
    stream.addEventListener("remoteCloseWrite", () => void stream.close().catch(() => undefined));
  }

  #keep(id: string, stream: Stream): void {
    const open = this.#streams.get(id) ?? [];
    this.#streams.set(id, [...open, stream]);
    if (open.length >= mostStreams) open[0]?.abort(new Error("another stream took its place"));
    stream.addEventListener("close", () => {
      const left = this.#streams.get(id)?.filter((each) => each !== stream) ?? [];
      if (left.length === 0) this.#streams.delete(id);
      else this.#streams.set(id, left);
    });
  }

  /** What comes meanwhile waits in the stream. */
  async #read(stream: Stream, from: PeerId, frames: Iterable<Uint8Array>, own: TokenBucket): Promise<void> {
    try {
      pause(stream);
      for (const frame of frames) await this.#take(from, frame, own);
      resume(stream);
    } catch (reason) {
      stream.abort(reason instanceof Error ? reason : new Error(String(reason)));
    }
  }

  async #take(from: PeerId, frame: Uint8Array, own: TokenBucket): Promise<void> {
    const { router, isSubscribed } = this.#deps;
    const rpc = router.decodeRpc(frame);
    await own.take(frame.length + messageCost * rpc.messages.length);
    rpc.messages = rpc.messages.filter(({ topic }) => isSubscribed(topic));
    await router.handleReceivedRpc(from, rpc);
  }
}
