/**
 * Exchange of blocks with other peers: what is missing here is fetched, what is here is served. Speaks bitswap 1.2, 1.1
 * and 1.0.
 */
import type { Connection, Libp2p, PeerId, Stream } from "@libp2p/interface";
import type { CID } from "multiformats/cid";
import type { BlockSource, Blocks } from "../../storage/blockstore/blocks.ts";
import { Buffers } from "../../storage/blockstore/buffers.ts";
import type { NodeLog } from "../../util/log.ts";
import { Partner } from "./bitswap_peer.ts";
import { Serving, type ServingOptions } from "./decision_engine.ts";
import { Inbound } from "./inbound.ts";
import { Ledger } from "./ledger.ts";
import { protocols, type Received } from "./message.ts";
import type { OpenedStream } from "./message_queue.ts";
import type { Lease } from "./refcounted_buffer.ts";
import { type Provider, type Providers, Session } from "./session.ts";
import { Wants } from "./wants.ts";

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

export interface BitswapOptions extends ServingOptions {
  readonly libp2p: Host;
  readonly blocks: Blocks;
  readonly log: NodeLog;
  /** Milliseconds to open a stream in, and after which a peer that takes nothing, or too little while others wait, is given up. */
  readonly patience?: number;
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
  readonly unwantedReceived: number;
  /** Wants of peers beyond the bounds. */
  readonly wantsRefused: number;
  /** What came and was no message. */
  readonly malformed: number;
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
const mostStreams = 64;

/** A multiplexer without pacing: who reads slowly resets a stream that has brought it 4 MiB too many. */
const unpaced = "/mplex/6.7.0";
/** Bytes for one of its streams: fewer would make more streams in a second than some allow. */
const unpacedBytes = 2 * 1024 * 1024;

export class Bitswap implements BlockSource {
  readonly #host: Host;
  readonly #log: NodeLog;
  readonly #blocks: Blocks;
  readonly #patience: number | undefined;
  readonly #wants: Wants;
  readonly #serving: Serving;
  readonly #inbound = new Map<Partner, Inbound>();
  readonly #sessions = new WeakMap<AbortSignal, Session>();
  /** For messages that come. */
  readonly #buffers = new Buffers();
  #topologies: string[] = [];
  #messages = 0;
  #malformed = 0;
  #running = false;

  constructor({ libp2p, blocks, log, patience, ...serving }: BitswapOptions) {
    this.#host = libp2p;
    this.#log = log;
    this.#blocks = blocks;
    this.#patience = patience;
    this.#serving = new Serving(blocks, log, serving);
    this.#wants = new Wants({ blocks, log, reach: (provider, signal) => this.#reach(provider, signal) });
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
    await this.#host.handle([...protocols], this.#accept, { maxInboundStreams: mostStreams });
    const onConnect = (peer: PeerId, connection: Connection) => void this.#partner(peer, connection);
    for (const protocol of protocols) this.#topologies.push(await this.#host.register(protocol, { onConnect }));
    this.#host.addEventListener("peer:disconnect", this.#leave);
    this.#blocks.onStored = this.#here;
  }

  /** Fetches that are under way are rejected. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    this.#running = false;
    this.#blocks.onStored = undefined;
    this.#host.removeEventListener("peer:disconnect", this.#leave);
    for (const topology of this.#topologies.splice(0)) this.#host.unregister(topology);
    this.#wants.close();
    for (const partner of this.#wants.partners.values()) this.#drop(partner, new Error("the node is closed"));
    await this.#host.unhandle([...protocols]);
  }

  /**
   * Calls with one signal make a session: they are taken to want parts of one thing. Rejects with the reason of the
   * signal, and when the node closes or cannot store the block.
   */
  fetch(cid: CID, signal: AbortSignal | undefined, buffers?: Buffers): Promise<Uint8Array> {
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
    this.#here(cids.map((cid) => ({ cid })));
  }

  stat(): BitswapStat {
    const { income, partners, providers } = this.#wants;
    const { outgo } = this.#serving;
    return {
      provideBufLen: providers?.queued ?? 0,
      wantlist: this.wantlist(),
      peers: [...partners.keys()].sort(),
      blocksReceived: income.blocks,
      dataReceived: income.bytes,
      blocksSent: outgo.blocks,
      dataSent: outgo.bytes,
      dupBlksReceived: income.duplicates,
      dupDataReceived: income.duplicateBytes,
      messagesReceived: this.#messages,
      unwantedReceived: income.unwanted,
      wantsRefused: outgo.refused,
      malformed: this.#malformed,
    };
  }

  /** What this node wants; with a peer, what that one wants of us. */
  wantlist(peer?: PeerId): CID[] {
    if (peer === undefined) return this.#wants.list();
    const partner = this.#wants.partners.get(peer.toString());
    return partner === undefined ? [] : this.#serving.wantlist(partner);
  }

  /** Zeros for a peer that is not connected. */
  ledger(peer: PeerId): Receipt {
    const name = peer.toString();
    const { value, sent, received, exchanged } = this.#wants.partners.get(name)?.ledger ?? new Ledger();
    return { peer: name, value, sent, received, exchanged };
  }

  readonly #here = (blocks: readonly { readonly cid: CID }[]): void => {
    this.#wants.here(blocks);
    this.#serving.here(blocks);
  };

  readonly #accept = (stream: Stream, connection: Connection): void => {
    const partner = this.#partner(connection.remotePeer, connection);
    if (partner === undefined) stream.abort(new Error("the node is closed"));
    else this.#inbound.get(partner)?.add(stream);
  };

  readonly #leave = ({ detail: peer }: CustomEvent<PeerId>): void => {
    const partner = this.#wants.partners.get(peer.toString());
    if (partner !== undefined) this.#drop(partner, new Error("the peer has left"));
  };

  /** The partner that a connected peer is, or becomes now. */
  #partner(peer: PeerId, connection: Connection): Partner | undefined {
    const known = this.#wants.partners.get(peer.toString());
    if (known !== undefined) return known;
    // It may have left while libp2p looked at what it speaks.
    if (!this.#running || connection.status !== "open") return undefined;
    const broken = (partner: Partner, reason: unknown) => {
      this.#log.write("bitswap", "debug", `the stream to ${partner.name} broke: ${reason}`);
      this.#serving.broken(partner);
      this.#wants.broken(partner);
    };
    const open = (signal: AbortSignal) => this.#open(peer, signal);
    const isPressed = () => this.#serving.isShort;
    const options = this.#patience === undefined ? { isPressed } : { isPressed, patience: this.#patience };
    const partner = new Partner(peer, open, broken, options);
    const message = (received: Received, memory: Lease) => this.#receive(partner, received, memory);
    const malformed = (reason: unknown) => {
      this.#malformed += 1;
      this.#fault(partner, `sends what is no message: ${reason}`, 4);
    };
    this.#inbound.set(partner, new Inbound({ message, malformed }, this.#buffers));
    this.#serving.join(partner);
    this.#wants.join(partner);
    return partner;
  }

  #drop(partner: Partner, reason: Error): void {
    this.#inbound.get(partner)?.close(reason);
    this.#inbound.delete(partner);
    this.#serving.leave(partner);
    this.#wants.leave(partner);
    partner.link.close(reason);
  }

  async #open(peer: PeerId, signal: AbortSignal): Promise<OpenedStream> {
    const connection = this.#host.getConnections(peer).find(({ status, limits }) => status === "open" && !limits);
    if (connection === undefined) throw new Error("the peer is not connected");
    const stream = await connection.newStream([...protocols], { signal });
    return { stream, most: connection.multiplexer === unpaced ? unpacedBytes : Number.POSITIVE_INFINITY };
  }

  #receive(partner: Partner, received: Received, memory: Lease): Promise<void> | undefined {
    this.#messages += 1;
    if (received.entries.length > 0 || received.full || received.leftOut > 0) this.#serving.receive(partner, received);
    if (received.presences.length > 0) this.#wants.told(partner, received.presences);
    if (received.parcels.length === 0) return undefined;
    return this.#wants.received(partner, received.parcels, memory).then(
      (unasked) => {
        if (unasked > 0) this.#fault(partner, "sends blocks that nobody asked for", unasked);
      },
      (error) => this.#log.write("bitswap", "error", `blocks of ${partner.name} cannot be taken: ${error}`),
    );
  }

  /** A peer that goes on like that is disconnected. */
  #fault(partner: Partner, deed: string, weight: number): void {
    this.#log.write("bitswap", "warn", `${partner.name} ${deed}`);
    if (partner.bears(weight) || this.#wants.partners.get(partner.name) !== partner) return;
    this.#drop(partner, new Error(`the peer ${deed}`));
    this.#host.hangUp(partner.id).catch(() => {});
  }

  async #reach({ id, multiaddrs }: Provider, signal: AbortSignal): Promise<void> {
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
