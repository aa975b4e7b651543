/** Streams that peers opened: their RPCs are handled in order, and read no faster than they are handled. */
import type { Connection, PeerId, Stream } from "@libp2p/interface";
import { FrameReader } from "../../formats/protobuf/frame_reader.ts";
import { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import { allowBuffering, pause, resume } from "../swarm/stream_backpressure.ts";
import { MAX_RPC_SIZE } from "./limits.ts";
import { requireBounded } from "./message.ts";
import type { GossipsubInternals } from "./patches/gossipsub.ts";
import { TokenBucket } from "./token_bucket.ts";

/** Streams of one peer: more than go-ipfs opens while two connections cross. */
const MAX_STREAMS = 4;
/** Bytes that a message counts beside its own: it is validated, and its id is remembered for a while. */
const MESSAGE_COST = 2048;
/**
 * Bytes that a peer may send at once, and per second. Messages are kept for some seconds for peers that ask for them,
 * so this bounds the memory that one peer can take.
 */
const RATE_LIMIT = { burst: 16 * 1024 * 1024, perSecond: 8 * 1024 * 1024 };

export interface InboundDeps {
  readonly router: Pick<GossipsubInternals, "onPeerConnected" | "decodeRpc" | "handleReceivedRpc">;
  /** Messages of other topics are dropped before they are validated. */
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

  /** The oldest stream of a peer that opens too many is reset. */
  #track(id: string, stream: Stream): void {
    const open = this.#streams.get(id) ?? [];
    this.#streams.set(id, [...open, stream]);
    if (open.length >= MAX_STREAMS) open[0]?.abort(new Error("another stream took its place"));
    stream.addEventListener("close", () => {
      const left = this.#streams.get(id)?.filter((each) => each !== stream) ?? [];
      if (left.length === 0) this.#streams.delete(id);
      else this.#streams.set(id, left);
    });
  }

  /** The stream is paused until all frames are handled. */
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
