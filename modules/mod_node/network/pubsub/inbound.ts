/**
 * Handles streams that peers have opened: their RPCs are handled in order, and read no faster than
 * they are handled.
 */
import type { Connection, PeerId, Stream } from "@libp2p/interface";
import { FrameReader } from "../../formats/protobuf/frame_reader.ts";
import { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { allowBuffering, pause, resume } from "../swarm/stream_backpressure.ts";
import { MAX_RPC_SIZE } from "./limits.ts";
import { requireBounded } from "./message.ts";
import type { GossipsubInternals } from "./patches/gossipsub.ts";
import { TokenBucket } from "./token_bucket.ts";

/** Maximum number of streams of one peer: more than go-ipfs opens while two connections cross. */
const MAX_STREAMS = 4;
/**
 * Number of bytes that a message costs in addition to its size, because it is validated and its id
 * is remembered for a while.
 */
const MESSAGE_COST = 2048;
/**
 * Number of bytes that a peer may send at once, and per second. Messages are stored for some
 * seconds for peers that request them, so this limits the memory that one peer can occupy.
 */
const RATE_LIMIT = { burst: 16 * 1024 * 1024, perSecond: 8 * 1024 * 1024 };

export interface InboundDeps {
  readonly router: Pick<GossipsubInternals, "onPeerConnected" | "decodeRpc" | "handleReceivedRpc">;
  /**
   * Whether the node is subscribed to a topic; messages of other topics are dropped before their
   * validation.
   */
  isSubscribed(topic: string): boolean;
}

export class Inbound {
  readonly #deps: InboundDeps;
  readonly #streams = new Map<string, Stream[]>();

  constructor(deps: InboundDeps) {
    this.#deps = deps;
  }

  /** Reads a stream until its peer ends it, or sends an RPC that is malformed or too long. */
  add(stream: Stream, connection: Connection): void {
    const { remotePeer } = connection;
    this.#deps.router.onPeerConnected(remotePeer, connection);
    this.#track(remotePeer.toString(), stream);
    allowBuffering(stream);
    const frames = new FrameReader(MAX_RPC_SIZE, new BufferPool());
    const bucket = new TokenBucket(RATE_LIMIT);
    stream.addEventListener("message", ({ data }) => void this.#read(stream, remotePeer, frames.read(data), bucket));
    stream.addEventListener("remoteCloseWrite", () => void stream.close().catch(() => undefined));
  }

  /** Tracks the streams of a peer, and resets the oldest if there are too many. */
  #track(id: string, stream: Stream): void {
    const open = this.#streams.get(id) ?? [];
    this.#streams.set(id, [...open, stream]);
    if (open.length >= MAX_STREAMS) open[0]?.abort(new Error("another stream has replaced this one"));
    stream.addEventListener("close", () => {
      const left = this.#streams.get(id)?.filter((each) => each !== stream) ?? [];
      if (left.length === 0) this.#streams.delete(id);
      else this.#streams.set(id, left);
    });
  }

  /** Handles frames; the stream is paused until all of them are handled. */
  async #read(stream: Stream, from: PeerId, frames: Iterable<Uint8Array>, bucket: TokenBucket): Promise<void> {
    try {
      pause(stream);
      for (const frame of frames) await this.#handle(from, frame, bucket);
      resume(stream);
    } catch (reason) {
      stream.abort(reason instanceof Error ? reason : new Error(String(reason)));
    }
  }

  async #handle(from: PeerId, frame: Uint8Array, bucket: TokenBucket): Promise<void> {
    const { router, isSubscribed } = this.#deps;
    requireBounded(frame);
    const rpc = router.decodeRpc(frame);
    await bucket.take(frame.length + MESSAGE_COST * rpc.messages.length);
    rpc.messages = rpc.messages.filter(({ topic }) => isSubscribed(topic));
    await router.handleReceivedRpc(from, rpc);
  }
}
