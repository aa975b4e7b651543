/** Peers for tests of bitswap: complete nodes, and peers that follow the instructions of a test. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { identify } from "@libp2p/identify";
import type { Libp2p, PeerId, Stream, StreamMuxerFactory } from "@libp2p/interface";
import { noise } from "@libp2p/noise";
import { tcp } from "@libp2p/tcp";
import { tls } from "@libp2p/tls";
import { yamux } from "@libp2p/yamux";
import { createLibp2p } from "libp2p";
import { CID } from "multiformats/cid";
import { create as createDigest } from "multiformats/hashes/digest";
import { FrameReader } from "#node/formats/protobuf/frame_reader.ts";
import { Bitswap, type BitswapDeps } from "#node/network/bitswap/bitswap.ts";
import { encodeMessage } from "#node/network/bitswap/encode_message.ts";
import { cidPrefix } from "#node/network/bitswap/keys.ts";
import {
  type DecodedMessage,
  decodeMessage,
  MAX_MESSAGE_SIZE,
  type Message,
  protocols,
  type WantlistEntry,
} from "#node/network/bitswap/message.ts";
import { BlockService } from "#node/storage/blockstore/block_service.ts";
import { BufferPool } from "#node/storage/blockstore/buffer_pool.ts";
import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import type { Block } from "#node/storage/blockstore/store.ts";
import { NodeLog } from "#node/util/log.ts";

const rawCodec = 0x55;
const sha256 = 0x12;

export function blockOf(bytes: Uint8Array): Block {
  return { cid: CID.createV1(rawCodec, createDigest(sha256, createHash("sha256").update(bytes).digest())), bytes };
}

export const someBlocks = (count: number, size: number): Block[] =>
  Array.from({ length: count }, () => blockOf(randomBytes(size)));

/** A libp2p host on loopback, stopped after the test. */
export async function host(
  t: TestContext,
  encrypters = [tls(), noise()],
  multiplexers: readonly (() => StreamMuxerFactory)[] = [yamux()],
): Promise<Libp2p> {
  const libp2p = await createLibp2p({
    addresses: { listen: ["/ip4/127.0.0.1/tcp/0"] },
    transports: [tcp()],
    connectionEncrypters: encrypters,
    streamMuxers: [...multiplexers],
    services: { identify: identify() },
    connectionManager: { inboundConnectionThreshold: 1000 },
  });
  t.after(() => libp2p.stop());
  return libp2p;
}

export interface Peer {
  readonly libp2p: Libp2p;
  readonly id: PeerId;
  readonly blocks: BlockService;
  readonly bitswap: Bitswap;
}

/** A host with bitswap over blocks in memory. */
export async function peer(t: TestContext, options: Partial<BitswapDeps> = {}, on = host(t)): Promise<Peer> {
  const libp2p = await on;
  const blocks = new BlockService(memoryBlocks());
  const bitswap = new Bitswap({ libp2p, blocks, log: new NodeLog(), ...options });
  await bitswap.start();
  blocks.source = bitswap;
  t.after(() => bitswap.stop());
  return { libp2p, id: libp2p.peerId, blocks, bitswap };
}

export const connect = (from: { readonly libp2p: Libp2p }, to: { readonly libp2p: Libp2p }) =>
  from.libp2p.dial(to.libp2p.getMultiaddrs());

/** Polls a condition until it is true, if there is no event for it. */
export async function until(holds: () => boolean, what: string, ms = 60_000): Promise<void> {
  const end = performance.now() + ms;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export const silent: Message = { full: false, entries: [], blocks: [], presences: [], pendingBytes: 0 };

/** A peer that follows the instructions of a test, and records the messages that it receives. */
export class Puppet {
  readonly libp2p: Libp2p;
  readonly #protocol: string;
  /** All messages received so far. */
  readonly received: DecodedMessage[] = [];
  /** The data that each stream to it has received so far. */
  readonly streams: { bytes: number }[] = [];
  /** Handles a received message. */
  onMessage: (message: DecodedMessage) => void = () => {};
  #nextMessage = Promise.withResolvers<void>();
  #out: Promise<Stream> | undefined;
  #partner: PeerId | undefined;

  constructor(libp2p: Libp2p, protocol: string) {
    this.libp2p = libp2p;
    this.#protocol = protocol;
  }

  get id(): PeerId {
    return this.libp2p.peerId;
  }

  get entries(): WantlistEntry[] {
    return this.received.flatMap(({ entries }) => [...entries]);
  }

  async start(): Promise<void> {
    await this.libp2p.handle(this.#protocol, (stream) => {
      const frames = new FrameReader(MAX_MESSAGE_SIZE, new BufferPool());
      const brought = { bytes: 0 };
      this.streams.push(brought);
      stream.addEventListener("remoteCloseWrite", () => void stream.close());
      stream.addEventListener("message", ({ data }) => {
        brought.bytes += data.byteLength;
        for (const frame of frames.read(data)) {
          const message = decodeMessage(frame);
          this.received.push(message);
          this.onMessage(message);
          this.#nextMessage.resolve();
          this.#nextMessage = Promise.withResolvers();
        }
      });
    });
  }

  async join(other: { readonly libp2p: Libp2p }): Promise<void> {
    await this.libp2p.dial(other.libp2p.getMultiaddrs());
    this.#partner = other.libp2p.peerId;
  }

  /** Opens a stream to the peer that it is connected to. */
  async stream(): Promise<Stream> {
    return this.libp2p.dialProtocol(this.#partner as PeerId, this.#protocol);
  }

  async say(message: Partial<Message>): Promise<void> {
    this.#out ??= this.stream();
    const stream = await this.#out;
    for (const piece of encodeMessage({ ...silent, ...message })) {
      if (!stream.send(piece)) await Promise.race([once(stream as never, "drain"), once(stream as never, "close")]);
    }
  }

  /** Sends blocks, with the prefix of their CIDs unless the version has none. */
  give(...blocks: Block[]): Promise<void> {
    const bare = this.#protocol !== protocols[0] && this.#protocol !== protocols[1];
    return this.say({
      blocks: blocks.map(({ cid, bytes }) => ({ prefix: bare ? undefined : cidPrefix(cid), data: bytes })),
    });
  }

  /** Resolves to the first matching entry when it has arrived. */
  async entry(fits: (entry: WantlistEntry) => boolean): Promise<WantlistEntry> {
    for (;;) {
      const next = this.#nextMessage.promise;
      const found = this.entries.find(fits);
      if (found !== undefined) return found;
      await next;
    }
  }

  async presence(cid: CID): Promise<boolean> {
    for (;;) {
      const next = this.#nextMessage.promise;
      for (const { presences } of this.received) {
        const found = presences.find((each) => Buffer.compare(each.cid, cid.bytes) === 0);
        if (found !== undefined) return found.have;
      }
      await next;
    }
  }

  async parcel(bytes: Uint8Array): Promise<DecodedMessage["blocks"][number]> {
    for (;;) {
      const next = this.#nextMessage.promise;
      const all = this.received.flatMap(({ blocks }) => [...blocks]);
      const found = all.find(({ data }) => Buffer.compare(data, bytes) === 0);
      if (found !== undefined) return found;
      await next;
    }
  }
}

/** Speaks one version of the protocol. */
export async function puppet(t: TestContext, protocol: string = protocols[0]): Promise<Puppet> {
  const made = new Puppet(await host(t), protocol);
  await made.start();
  return made;
}

export const wantOf = ({ cid }: Block, rest: Partial<WantlistEntry> = {}): WantlistEntry => ({
  cid: cid.bytes,
  priority: 1,
  cancel: false,
  have: false,
  sendDontHave: true,
  ...rest,
});

export const isFor =
  ({ cid }: Block, rest: Partial<WantlistEntry> = {}) =>
  (entry: WantlistEntry): boolean =>
    Buffer.compare(entry.cid, cid.bytes) === 0 &&
    Object.entries(rest).every(([field, value]) => entry[field as keyof WantlistEntry] === value);
