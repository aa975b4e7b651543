/**
 * Bitswap: fetches missing blocks from peers, and serves local blocks to them. Implements versions
 * 1.0 to 1.2 of the bitswap specification.
 */

import type { Connection, Libp2p, PeerId, Stream } from "@libp2p/interface";
import type { CID } from "multiformats/cid";
import type { BlockService, BlockSource } from "../../storage/blockstore/block_service.ts";
import { BufferPool } from "../../storage/blockstore/buffer_pool.ts";
import type { NodeLog } from "../../util/log.ts";
import type { ProviderRecord } from "../routing/provider_record.ts";
import { isHttp } from "../swarm/multiaddr.ts";
import { MPLEX } from "../swarm/patches/mplex/mplex_factory.ts";
import { NOISE } from "../swarm/patches/noise/frame_decoder.ts";
import { PatchNotices } from "../swarm/patches/notices.ts";
import { widenWindow, YAMUX } from "../swarm/patches/yamux/receive_window.ts";
import { BitswapPeer } from "./bitswap_peer.ts";
import type { OtherSources, SourceReceiver } from "./block_peer.ts";
import type { BlockSizes } from "./block_sizes.ts";
import { DecisionEngine, type DecisionEngineOptions } from "./decision_engine.ts";
import { Inbound } from "./inbound.ts";
import { Ledger } from "./ledger.ts";
import { type DecodedMessage, protocols } from "./message.ts";
import type { OpenedStream } from "./message_queue.ts";
import type { RefcountedBuffer } from "./refcounted_buffer.ts";
import { type Providers, Session } from "./session.ts";
import { WantManager } from "./want_manager.ts";

export type { Providers };

/** The part of libp2p that bitswap uses. */
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
  /**
   * If false, bitswap talks to no peer, and blocks only come from other sources. True by default.
   */
  readonly overLibp2p?: boolean;
  /** Same as `MessageQueueOptions.timeoutMs`. */
  readonly timeoutMs?: number;
}

/** Totals since the start. Bytes count the contents of blocks. */
export interface BitswapStat {
  /** Number of CIDs that wait to be provided. */
  readonly provideBufLen: number;
  readonly wantlist: readonly CID[];
  /** Connected peers that speak bitswap, sorted. */
  readonly peers: readonly string[];
  readonly blocksReceived: number;
  readonly dataReceived: number;
  readonly blocksSent: number;
  readonly dataSent: number;
  readonly dupBlksReceived: number;
  readonly dupDataReceived: number;
  readonly messagesReceived: number;
  /** Number of blocks that were never requested; they were dropped. */
  readonly unwantedBlocksReceived: number;
  /** Number of wants of peers that exceeded the limits. */
  readonly wantsRefused: number;
  /** Number of streams that carried an invalid message. */
  readonly malformedMessages: number;
}

/** The ledger of a peer since it connected; bytes. */
export interface Receipt {
  readonly peer: string;
  readonly value: number;
  readonly sent: number;
  readonly received: number;
  /** Number of blocks in both directions. */
  readonly exchanged: number;
}

/**
 * Maximum number of streams that a peer may open to this node; some implementations open one per
 * message.
 */
const MAX_INBOUND_STREAMS = 64;

/**
 * Number of bytes after which an mplex stream is replaced, at the end of the current message. mplex
 * has no flow control: a peer that reads slowly resets a stream once 4 MiB are queued in it. A
 * smaller number would open more streams per second than some peers allow.
 */
const MAX_MPLEX_STREAM_BYTES = 1.5 * 1024 * 1024;

export class Bitswap implements BlockSource {
  readonly #host: Host;
  readonly #log: NodeLog;
  readonly #blocks: BlockService;
  readonly #patches: PatchNotices;
  readonly #overLibp2p: boolean;
  readonly #timeoutMs: number | undefined;
  readonly #wants: WantManager;
  readonly #engine: DecisionEngine;
  readonly #inbound = new Map<BitswapPeer, Inbound>();
  readonly #sessions = new WeakMap<AbortSignal, Session>();
  /** Buffers for received messages and for blocks to send. */
  readonly #buffers = new BufferPool();
  #topologies: string[] = [];
  #messages = 0;
  #malformed = 0;
  #running = false;

  constructor({
    libp2p,
    blocks,
    log,
    patches = new PatchNotices(),
    overLibp2p = true,
    timeoutMs,
    ...limits
  }: BitswapDeps) {
    this.#host = libp2p;
    this.#log = log;
    this.#blocks = blocks;
    this.#patches = patches;
    this.#overLibp2p = overLibp2p;
    this.#timeoutMs = timeoutMs;
    this.#engine = new DecisionEngine({ blocks, log, buffers: this.#buffers }, limits);
    this.#wants = new WantManager({ blocks, log, connect: (provider, signal) => this.#dialProvider(provider, signal) });
  }

  /** The routing system that finds providers when no connected peer sends a block. */
  get providers(): Providers | undefined {
    return this.#wants.providers;
  }

  set providers(providers: Providers | undefined) {
    this.#wants.providers = providers;
  }

  /** Sources of blocks in addition to bitswap; they report their responses to `receiver`. */
  set sources(sources: OtherSources) {
    this.#wants.sources = sources;
  }

  get receiver(): SourceReceiver {
    return this.#wants;
  }

  async start(): Promise<void> {
    this.#running = true;
    this.#blocks.onStored = this.#blocksStored;
    if (!this.#overLibp2p) return;
    await this.#host.handle([...protocols], this.#onStream, { maxInboundStreams: MAX_INBOUND_STREAMS });
    const onConnect = (peer: PeerId, connection: Connection) => void this.#peerFor(peer, connection);
    for (const protocol of protocols) this.#topologies.push(await this.#host.register(protocol, { onConnect }));
    this.#host.addEventListener("peer:disconnect", this.#onDisconnect);
  }

  /** Stops bitswap and rejects pending fetches. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    this.#running = false;
    this.#blocks.onStored = undefined;
    this.#host.removeEventListener("peer:disconnect", this.#onDisconnect);
    for (const topology of this.#topologies.splice(0)) this.#host.unregister(topology);
    this.#wants.close();
    for (const peer of this.#wants.peers.values()) this.#removePeer(peer, new Error("the node is closed"));
    if (this.#overLibp2p) await this.#host.unhandle([...protocols]);
  }

  /**
   * Fetches a block. Calls with the same signal share a session, because they usually concern the
   * same content. Rejects with the reason of the signal, and when the node closes or cannot store
   * the block.
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

  /**
   * Returns a source for blocks that belong together: everything below `root`, if that is known.
   */
  session(root?: CID): BlockSource {
    const session = new Session(this.#wants, root);
    return { fetch: (cid, signal, buffers) => this.#wants.fetch(session, cid, signal, buffers) };
  }

  /**
   * Handles blocks that another host or process has stored: delivers them to local waiters and to
   * peers that want them.
   */
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

  /** Distribution of block sizes since the start. */
  get sizes(): Readonly<Record<"received" | "duplicate" | "sent", BlockSizes>> {
    const { sizes: received, duplicateSizes: duplicate } = this.#wants.received;
    return { received, duplicate, sent: this.#engine.sent.sizes };
  }

  /** Returns the wantlist of this node, or the blocks that the given peer wants from it. */
  wantlist(id?: PeerId): CID[] {
    if (id === undefined) return this.#wants.list();
    const peer = this.#wants.peers.get(id.toString());
    return peer === undefined ? [] : this.#engine.wantlist(peer);
  }

  /** Cancels wants: their fetches reject with BLOCK_NOT_FOUND. */
  unwant(cids: readonly CID[]): void {
    this.#wants.unwant(cids);
  }

  /** Returns the ledger of a peer, with zeros if it is not connected. */
  ledger(id: PeerId): Receipt {
    const name = id.toString();
    const { value, sent, received, exchanged } = this.#wants.peers.get(name)?.ledger ?? new Ledger();
    return { peer: name, value, sent, received, exchanged };
  }

  readonly #blocksStored = (blocks: readonly { readonly cid: CID }[]): void => {
    this.#wants.blocksStored(blocks);
    this.#engine.blocksStored(blocks);
  };

  readonly #onStream = (stream: Stream, connection: Connection): void => {
    const peer = this.#peerFor(connection.remotePeer, connection);
    if (peer === undefined) {
      stream.abort(new Error("the node is closed"));
      return;
    }
    if (connection.multiplexer === YAMUX) widenWindow(stream, this.#patches);
    this.#inbound.get(peer)?.add(stream);
    // The stream probably carries wants that need a response.
    peer.queue.prepare();
  };

  readonly #onDisconnect = ({ detail: id }: CustomEvent<PeerId>): void => {
    const peer = this.#wants.peers.get(id.toString());
    if (peer !== undefined) this.#removePeer(peer, new Error("the peer has left"));
  };

  /**
   * Returns the peer with that id and adds it if it is new; undefined if the peer or the node is
   * gone.
   */
  #peerFor(id: PeerId, connection: Connection): BitswapPeer | undefined {
    const known = this.#wants.peers.get(id.toString());
    if (known !== undefined) return known;
    // The peer may have disconnected while libp2p determined its protocols.
    if (!this.#running || connection.status !== "open") return undefined;
    const onBroken = (peer: BitswapPeer, reason: unknown) => {
      this.#log.write("bitswap", "debug", `the stream to ${peer.name} broke: ${reason}`);
      this.#engine.streamBroke(peer);
      this.#wants.streamBroke(peer);
    };
    const open = (signal: AbortSignal) => this.#openStream(id, signal);
    const isUnderPressure = () => this.#engine.isUnderPressure;
    const options =
      this.#timeoutMs === undefined ? { isUnderPressure } : { isUnderPressure, timeoutMs: this.#timeoutMs };
    const peer = new BitswapPeer(id, open, onBroken, options);
    const message = (received: DecodedMessage, memory: RefcountedBuffer) => this.#receive(peer, received, memory);
    const malformed = (reason: unknown) => {
      this.#malformed += 1;
      this.#punish(peer, `sends an invalid message: ${reason}`, 4);
    };
    this.#inbound.set(peer, new Inbound({ message, malformed }, this.#buffers));
    this.#engine.addPeer(peer);
    this.#wants.addPeer(peer);
    return peer;
  }

  #removePeer(peer: BitswapPeer, reason: Error): void {
    this.#inbound.get(peer)?.close(reason);
    this.#inbound.delete(peer);
    peer.state = "gone";
    this.#engine.removePeer(peer);
    this.#wants.removePeer(peer);
    peer.queue.close(reason);
  }

  async #openStream(id: PeerId, signal: AbortSignal): Promise<OpenedStream> {
    const connection = this.#host.getConnections(id).find(({ status, limits }) => status === "open" && !limits);
    if (connection === undefined) throw new Error("the peer is not connected");
    const stream = await connection.newStream([...protocols], { signal });
    return {
      stream,
      maxBytes: connection.multiplexer === MPLEX ? MAX_MPLEX_STREAM_BYTES : Number.POSITIVE_INFINITY,
      copies: connection.encryption === NOISE,
    };
  }

  #receive(peer: BitswapPeer, message: DecodedMessage, memory: RefcountedBuffer): Promise<void> | undefined {
    this.#messages += 1;
    if (message.entries.length > 0 || message.full || message.droppedEntries > 0)
      this.#engine.receiveWants(peer, message);
    if (message.presences.length > 0) this.#wants.receivePresences(peer, message.presences);
    if (message.blocks.length === 0) return undefined;
    return this.#wants.receiveBlocks(peer, message.blocks, memory).then(
      (unasked) => {
        if (unasked > 0) this.#punish(peer, "sends blocks that were not requested", unasked);
      },
      (error) => this.#log.write("bitswap", "error", `cannot accept blocks of ${peer.name}: ${error}`),
    );
  }

  /** Counts faults of a peer, and disconnects it after too many. */
  #punish(peer: BitswapPeer, fault: string, weight: number): void {
    this.#log.write("bitswap", "warn", `${peer.name} ${fault}`);
    if (peer.addFaults(weight) || this.#wants.peers.get(peer.name) !== peer) return;
    this.#removePeer(peer, new Error(`the peer ${fault}`));
    this.#host.hangUp(peer.id).catch(() => {});
  }

  async #dialProvider({ id, addresses: found }: ProviderRecord, signal: AbortSignal): Promise<void> {
    if (!this.#overLibp2p) return;
    const transports = found.filter((address) => !isHttp(address));
    if (transports.length === 0 && found.length > 0) return;
    const addresses = transports.map((address) =>
      address.getComponents().some(({ name }) => name === "p2p") ? address : address.encapsulate(`/p2p/${id}`),
    );
    try {
      await this.#host.dial(addresses.length > 0 ? addresses : id, { signal });
    } catch (error) {
      this.#log.write("bitswap", "debug", `cannot reach the provider ${id}: ${error}`);
    }
  }
}
