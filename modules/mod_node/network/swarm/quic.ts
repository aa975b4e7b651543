/**
 * QUIC v1, from a package with a native part that is not available on every platform. It is loaded
 * when an address or a dial needs it.
 */
import {
  type Connection,
  type CreateListenerOptions,
  type DialTransportOptions,
  type Listener,
  type ListenerEvents,
  type Logger,
  type PrivateKey,
  serviceCapabilities,
  start,
  stop,
  type Transport,
  TypedEventEmitter,
  transportSymbol,
} from "@libp2p/interface";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { raceSignal } from "../../util/async/abortable.ts";
import { failure } from "../../util/errors.ts";
import { type Multiaddr, parseMultiaddr } from "./multiaddr.ts";
import type { PatchNotices } from "./patches/notices.ts";
import { acceptConcurrently } from "./patches/quic/acceptors.ts";
import { withOwnStreams } from "./patches/quic/muxer.ts";

type Config = Pick<ConfigFile, "value">;

export interface QuicComponents {
  readonly privateKey: PrivateKey;
  readonly logger: { forComponent(name: string): Logger };
}

const PACKAGE = "@chainsafe/libp2p-quic";
/**
 * Timeout of a handshake in milliseconds: a UDP port without a listener does not respond, and other
 * addresses wait meanwhile.
 */
const HANDSHAKE_TIMEOUT_MS = 5000;

const load = () => import("@chainsafe/libp2p-quic");

export interface Quic {
  readonly make?: (components: QuicComponents) => Transport;
  /** Why QUIC is not available. */
  readonly missing?: string;
}

/**
 * Creates the QUIC transport if its native part is available. If a QUIC address is configured for
 * listening, this is determined here, else by the first dial.
 *
 * @throws NodeError if the configuration requires QUIC in a private network
 */
export async function quicTransport(config: Config, isPrivate: boolean, patches: PatchNotices): Promise<Quic> {
  const wanted = config.value("Swarm.Transports.Network.QUIC");
  if (wanted === true && isPrivate) {
    throw failure("CONFIG_INVALID", {
      reason: "The QUIC transport does not support private networks. Please disable Swarm.Transports.Network.QUIC.",
    });
  }
  if (isPrivate) return { missing: "a private network has no QUIC" };
  if (wanted === false) return { missing: "Swarm.Transports.Network.QUIC is false" };
  const isListening = (config.value("Addresses.Swarm") ?? []).some((text) => /\/quic-v1(?:\/|$)/.test(text));
  try {
    if (isListening) await load();
    return { make: (components) => new QuicTransport(components, patches) };
  } catch (error) {
    return { missing: whyMissing(error as Error) };
  }
}

function whyMissing({ message }: Error): string {
  if (/native binding/i.test(message))
    return `${PACKAGE} has no native part for ${process.platform} on ${process.arch} here`;
  return `${PACKAGE} fails: ${message}`;
}

/**
 * Matches `/ip4/…/udp/…/quic-v1`, with or without a peer at the end, but not protocols on top of
 * it, such as WebTransport.
 */
function isQuic(address: Multiaddr): boolean {
  const [host, ...rest] = address.getComponents().map(({ name }) => name);
  return (host === "ip4" || host === "ip6") && /^udp,quic-v1(?:,p2p)?$/.test(rest.join());
}

const quicAddresses = (addresses: Multiaddr[]): Multiaddr[] => addresses.filter(isQuic);

class QuicTransport implements Transport {
  readonly [transportSymbol] = true as const;
  readonly [Symbol.toStringTag] = "quic";
  readonly [serviceCapabilities]: readonly string[] = ["@libp2p/transport"];
  readonly dialFilter = quicAddresses;
  readonly listenFilter = quicAddresses;
  readonly #components: QuicComponents;
  readonly #patches: PatchNotices;
  #library: Promise<Transport> | undefined;

  constructor(components: QuicComponents, patches: PatchNotices) {
    this.#components = components;
    this.#patches = patches;
  }

  async dial(address: Multiaddr, options: DialTransportOptions): Promise<Connection> {
    const signal = AbortSignal.any([options.signal, AbortSignal.timeout(HANDSHAKE_TIMEOUT_MS)]);
    const upgrader = withOwnStreams(options.upgrader, this.#patches);
    const library = await this.#open();
    // The library only notices the signal after the handshake, and then drops the connection.
    const connection = await raceSignal(library.dial(address, { ...options, signal, upgrader }), signal);
    return connection as Connection;
  }

  createListener(options: CreateListenerOptions): Listener {
    const upgrader = withOwnStreams(options.upgrader, this.#patches);
    const make = async () => (await this.#open()).createListener({ ...options, upgrader });
    return new QuicListener(make, this.#patches);
  }

  async stop(): Promise<void> {
    const library = this.#library;
    this.#library = undefined;
    if (library !== undefined) await stop(await library);
  }

  #open(): Promise<Transport> {
    this.#library ??= this.#make();
    return this.#library;
  }

  async #make(): Promise<Transport> {
    try {
      const transport = (await load()).quic()(this.#components);
      await start(transport);
      return transport;
    } catch (error) {
      this.#library = undefined;
      throw new Error(whyMissing(error as Error), { cause: error });
    }
  }
}

/** A listener of the library, which is created when it starts to listen. */
class QuicListener extends TypedEventEmitter<ListenerEvents> implements Listener {
  readonly #make: () => Promise<Listener>;
  readonly #patches: PatchNotices;
  #listener: Listener | undefined;

  constructor(make: () => Promise<Listener>, patches: PatchNotices) {
    super();
    this.#make = make;
    this.#patches = patches;
  }

  async listen(address: Multiaddr): Promise<void> {
    const listener = await this.#make();
    this.#listener = listener;
    for (const type of ["listening", "close"] as const) {
      listener.addEventListener(type, () => this.safeDispatchEvent(type));
    }
    await listener.listen(address);
    acceptConcurrently(listener, this.#patches);
  }

  getAddrs(): Multiaddr[] {
    // If the system chose the port, the library's address has that port as text, but 0 as bytes.
    return (this.#listener?.getAddrs() ?? []).map((address) => parseMultiaddr(address.toString()));
  }

  updateAnnounceAddrs(addresses: Multiaddr[]): void {
    this.#listener?.updateAnnounceAddrs(addresses);
  }

  async close(): Promise<void> {
    await this.#listener?.close();
  }
}
