/**
 * Exchange of blocks with other peers: what is missing here is fetched, what is here is served. Speaks bitswap 1.2, 1.1
 * and 1.0.
 */
import type { Connection, Libp2p, PeerId, Stream } from "@libp2p/interface";
import type { CID } from "multiformats/cid";
import type { BlockService, BlockSource } from "../../storage/blockstore/block_service.ts";
import { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { NodeLog } from "../../util/log.ts";
import { MPLEX } from "../swarm/patches/mplex/mplex_factory.ts";
import { PatchNotices } from "../swarm/patches/notices.ts";
import { widenWindow, YAMUX } from "../swarm/patches/yamux/receive_window.ts";
import { BitswapPeer } from "./bitswap_peer.ts";
import { DecisionEngine, type DecisionEngineOptions } from "./decision_engine.ts";
import { Inbound } from "./inbound.ts";
import { Ledger } from "./ledger.ts";
import { type DecodedMessage, protocols } from "./message.ts";
import type { OpenedStream } from "./message_queue.ts";
import type { RefcountedBuffer } from "./refcounted_buffer.ts";
import { type Provider, type Providers, Session } from "./session.ts";
import { WantManager } from "./want_manager.ts";

export type { Provider, Providers };

/** What is used of libp2p. */
export type Host = Pick<
  Libp2p,
  | "handle"
  | "unhandle"
  | "register"
  | "unregister"
  | "getConnections"
  | "dial"
  | "hangUp"
  | "addEventListener"
  | "removeEventListener"
>;

export interface BitswapDeps extends DecisionEngineOptions {
  readonly libp2p: Host;
  readonly blocks: BlockService;
  readonly log: NodeLog;
  readonly patches?: PatchNotices;
  /** Milliseconds to open a stream in, and after which a peer that takes nothing, or too little while others wait, is given up. */
  readonly timeoutMs?: number;
}

/** Of all that happened since the start. Bytes are those of blocks. */
export interface BitswapStat {
  /** CIDs that wait to be announced to the routing system. */
  readonly provideBufLen: number;
  readonly wantlist: readonly CID[];
  /** Connected peers that exchange blocks, sorted. */
  readonly peers: readonly string[];
  readonly blocksReceived: number;
  readonly dataReceived: number;
  readonly blocksSent: number;
  readonly dataSent: number;
  readonly dupBlksReceived: number;
  readonly dupDataReceived: number;
  readonly messagesReceived: number;
  /** Blocks that were not asked for, or not those that were: dropped. */
  readonly unwantedBlocksReceived: number;
  /** Wants of peers beyond the bounds. */
  readonly wantsRefused: number;
  /** What came and was no message. */
  readonly malformedMessages: number;
}

/** What was exchanged with a peer while it is connected, in bytes. */
export interface Receipt {
  readonly peer: string;
  readonly value: number;
  readonly sent: number;
  readonly received: number;
  /** Blocks, both ways. */
  readonly exchanged: number;
}

/** Streams that a peer may have open to us; some open one for each message. */
const MAX_INBOUND_STREAMS = 64;

/** Bytes for one of its streams: fewer would make more streams in a second than some allow. */
const MAX_MPLEX_STREAM_BYTES = 2 * 1024 * 1024;

export class Bitswap implements BlockSource {
  readonly #host: Host;
  readonly #log: NodeLog;
  readonly #blocks: BlockService;
  readonly #patches: PatchNotices;
  readonly #timeoutMs: number | undefined;
  readonly #wants: WantManager;
  readonly #engine: DecisionEngine;
  readonly #inbound = new Map<BitswapPeer, Inbound>();
  readonly #sessions = new WeakMap<AbortSignal, Session>();
  /** For messages that come. */
  readonly #buffers = new BufferPool();
  #topologies: string[] = [];
  #messages = 0;
  #malformed = 0;
  #running = false;

  constructor({ libp2p, blocks, log, patches = new PatchNotices(), timeoutMs, ...serving }: BitswapDeps) {
    this.#patches = patches;
    this.#host = libp2p;
    this.#log = log;
    this.#blocks = blocks;
    this.#timeoutMs = timeoutMs;
    this.#engine = new DecisionEngine(blocks, log, serving);
    this.#wants = new WantManager({ blocks, log, reach: (provider, signal) => this.#dialProvider(provider, signal) });
  }

  /** Where peers are searched for that have what the connected ones do not send. */
  get providers(): Providers | undefined {
    return this.#wants.providers;
  }

  set providers(providers: Providers | undefined) {
    this.#wants.providers = providers;
  }

  async start(): Promise<void> {
    this.#running = true;
    await this.#host.handle([...protocols], this.#onStream, { maxInboundStreams: MAX_INBOUND_STREAMS });
    const onConnect = (peer: PeerId, connection: Connection) => void this.#peerFor(peer, connection);
    for (const protocol of protocols) this.#topologies.push(await this.#host.register(protocol, { onConnect }));
    this.#host.addEventListener("peer:disconnect", this.#onDisconnect);
    this.#blocks.onStored = this.#blocksStored;
  }

  /** Fetches that are under way are rejected. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    this.#running = false;
    this.#blocks.onStored = undefined;
    this.#host.removeEventListener("peer:disconnect", this.#onDisconnect);
    for (const topology of this.#topologies.splice(0)) this.#host.unregister(topology);
    this.#wants.close();
    for (const partner of this.#wants.peers.values()) this.#removePeer(partner, new Error("the node is closed"));
    await this.#host.unhandle([...protocols]);
  }

  /**
   * Calls with one signal make a session: they are taken to want parts of one thing. Rejects with the reason of the
   * signal, and when the node closes or cannot store the block.
   */
  fetch(cid: CID, signal: AbortSignal | undefined, buffers?: BufferPool): Promise<Uint8Array> {
    if (signal === undefined) return this.#wants.fetch(new Session(this.#wants, cid), cid, signal, buffers);
    let session = this.#sessions.get(signal);
    if (session === undefined) {
      session = new Session(this.#wants, cid);
      this.#sessions.set(signal, session);
    }
    return this.#wants.fetch(session, cid, signal, buffers);
  }

  /** A source for blocks that belong together, below `root` if there is one. */
  session(root?: CID): BlockSource {
    const session = new Session(this.#wants, root);
    return { fetch: (cid, signal, buffers) => this.#wants.fetch(session, cid, signal, buffers) };
  }

  /** Blocks have come to this node: whoever waits for them, here or elsewhere, gets them. */
  notify(cids: readonly CID[]): void {
    this.#blocksStored(cids.map((cid) => ({ cid })));
  }

  stat(): BitswapStat {
    const { received, peers, providers } = this.#wants;
    const { sent } = this.#engine;
    return {
      provideBufLen: providers?.queued ?? 0,
      wantlist: this.wantlist(),
      peers: [...peers.keys()].sort(),
      blocksReceived: received.blocks,
      dataReceived: received.bytes,
      blocksSent: sent.blocks,
      dataSent: sent.bytes,
      dupBlksReceived: received.duplicates,
      dupDataReceived: received.duplicateBytes,
      messagesReceived: this.#messages,
      unwantedBlocksReceived: received.unwanted,
      wantsRefused: sent.refused,
      malformedMessages: this.#malformed,
    };
  }

  /** What this node wants; with a peer, what that one wants of us. */
  wantlist(peer?: PeerId): CID[] {
    if (peer === undefined) return this.#wants.list();
    const partner = this.#wants.peers.get(peer.toString());
    return partner === undefined ? [] : this.#engine.wantlist(partner);
  }

  /** Zeros for a peer that is not connected. */
  ledger(peer: PeerId): Receipt {
    const name = peer.toString();
    const { value, sent, received, exchanged } = this.#wants.peers.get(name)?.ledger ?? new Ledger();
    return { peer: name, value, sent, received, exchanged };
  }

  readonly #blocksStored = (blocks: readonly { readonly cid: CID }[]): void => {
    this.#wants.blocksStored(blocks);
    this.#engine.blocksStored(blocks);
  };

  readonly #onStream = (stream: Stream, connection: Connection): void => {
    const partner = this.#peerFor(connection.remotePeer, connection);
    if (partner === undefined) stream.abort(new Error("the node is closed"));
    else {
      if (connection.multiplexer === YAMUX) widenWindow(stream, this.#patches);
      this.#inbound.get(partner)?.add(stream);
    }
  };

  readonly #onDisconnect = ({ detail: peer }: CustomEvent<PeerId>): void => {
    const partner = this.#wants.peers.get(peer.toString());
    if (partner !== undefined) this.#removePeer(partner, new Error("the peer has left"));
  };

  /** The partner that a connected peer is, or becomes now. */
  #peerFor(peer: PeerId, connection: Connection): BitswapPeer | undefined {
    const known = this.#wants.peers.get(peer.toString());
    if (known !== undefined) return known;
    // It may have left while libp2p looked at what it speaks.
    if (!this.#running || connection.status !== "open") return undefined;
    const broken = (partner: BitswapPeer, reason: unknown) => {
      this.#log.write("bitswap", "debug", `the stream to ${partner.name} broke: ${reason}`);
      this.#engine.streamBroke(partner);
      this.#wants.streamBroke(partner);
    };
    const open = (signal: AbortSignal) => this.#openStream(peer, signal);
    const isUnderPressure = () => this.#engine.isUnderPressure;
    const options =
      this.#timeoutMs === undefined ? { isUnderPressure } : { isUnderPressure, timeoutMs: this.#timeoutMs };
    const partner = new BitswapPeer(peer, open, broken, options);
    const message = (received: DecodedMessage, memory: RefcountedBuffer) => this.#receive(partner, received, memory);
    const malformed = (reason: unknown) => {
      this.#malformed += 1;
      this.#punish(partner, `sends what is no message: ${reason}`, 4);
    };
    this.#inbound.set(partner, new Inbound({ message, malformed }, this.#buffers));
    this.#engine.addPeer(partner);
    this.#wants.addPeer(partner);
    return partner;
  }

  #removePeer(partner: BitswapPeer, reason: Error): void {
    this.#inbound.get(partner)?.close(reason);
    this.#inbound.delete(partner);
    this.#engine.removePeer(partner);
    this.#wants.leave(partner);
    partner.queue.close(reason);
  }

  async #openStream(peer: PeerId, signal: AbortSignal): Promise<OpenedStream> {
    const connection = this.#host.getConnections(peer).find(({ status, limits }) => status === "open" && !limits);
    if (connection === undefined) throw new Error("the peer is not connected");
    const stream = await connection.newStream([...protocols], { signal });
    return { stream, maxBytes: connection.multiplexer === MPLEX ? MAX_MPLEX_STREAM_BYTES : Number.POSITIVE_INFINITY };
  }

  #receive(partner: BitswapPeer, received: DecodedMessage, memory: RefcountedBuffer): Promise<void> | undefined {
    this.#messages += 1;
    if (received.entries.length > 0 || received.full || received.droppedEntries > 0)
      this.#engine.receiveWants(partner, received);
    if (received.presences.length > 0) this.#wants.receivePresences(partner, received.presences);
    if (received.blocks.length === 0) return undefined;
    return this.#wants.receiveBlocks(partner, received.blocks, memory).then(
      (unasked) => {
        if (unasked > 0) this.#punish(partner, "sends blocks that nobody asked for", unasked);
      },
      (error) => this.#log.write("bitswap", "error", `blocks of ${partner.name} cannot be taken: ${error}`),
    );
  }

  /** A peer that goes on like that is disconnected. */
  #punish(partner: BitswapPeer, deed: string, weight: number): void {
    this.#log.write("bitswap", "warn", `${partner.name} ${deed}`);
    if (partner.addFaults(weight) || this.#wants.peers.get(partner.name) !== partner) return;
    this.#removePeer(partner, new Error(`the peer ${deed}`));
    this.#host.hangUp(partner.id).catch(() => {});
  }

  async #dialProvider({ id, multiaddrs }: Provider, signal: AbortSignal): Promise<void> {
    const whole = multiaddrs.map((address) =>
      address.getComponents().some(({ name }) => name === "p2p") ? address : address.encapsulate(`/p2p/${id}`),
    );
    try {
      await this.#host.dial(whole.length > 0 ? whole : id, { signal });
    } catch (error) {
      this.#log.write("bitswap", "debug", `the provider ${id} cannot be reached: ${error}`);
    }
  }
}
