/**
 * Manages the listening addresses of a running libp2p according to the configuration and its
 * changes.
 */
import type { Listener } from "@libp2p/interface";
import { failure } from "../../util/errors.ts";
import { type Multiaddr, parseMultiaddr } from "./multiaddr.ts";

/**
 * Reports of the transports: each listener by its requested address, and each failure with its
 * reason.
 */
export interface ListenRecord {
  readonly opened: Map<string, Listener>;
  readonly failures: Map<string, string>;
}

export interface ListeningDeps {
  readonly record: ListenRecord;
  /** Opens addresses; the record then contains those that failed. */
  readonly listen: (addresses: Multiaddr[]) => Promise<void>;
  readonly hasTransport: (address: Multiaddr) => boolean;
}

/**
 * Returns the port of an address. Old addresses on the same port are closed before new ones are
 * opened, because 0.0.0.0 and 127.0.0.1 exclude each other.
 */
const portOf = (address: string): string => /\/(?:tcp|udp)\/\d+/.exec(address)?.[0] ?? address;

export class Listening {
  readonly #deps: ListeningDeps;
  /** Requested addresses, whether or not they are listened on. */
  #requested: ReadonlySet<string>;

  constructor(deps: ListeningDeps, requested: readonly Multiaddr[]) {
    this.#deps = deps;
    // Failures from before anything was opened are configured addresses that the node cannot listen
    // on.
    this.#requested = new Set([...requested.map(String), ...deps.record.failures.keys()]);
    this.#noteUnsupported(requested);
  }

  /**
   * Listens on exactly these addresses. New ones are opened before old ones are closed. Connections
   * stay open, except for those of removed WebSocket addresses.
   *
   * @param leftOut configured addresses that this node cannot listen on, each with the reason
   * @throws NodeError if a newly requested address cannot be listened on; the previous addresses
   * are then restored
   */
  async change(wanted: readonly Multiaddr[], leftOut: ReadonlyMap<string, string>): Promise<void> {
    const { opened, failures } = this.#deps.record;
    const unavailable = [...leftOut].filter(([address]) => !this.#requested.has(address));
    if (unavailable.length > 0) throw failure("LISTEN_FAILED", { reason: unavailable.map(notListenedOn).join("; ") });
    const next = new Map(wanted.map((address) => [String(address), address]));
    const leaving = [...opened.keys()].filter((address) => !next.has(address));
    const coming = wanted.filter((address) => !opened.has(String(address)));
    const ports = new Set(coming.map((address) => portOf(String(address))));
    const inTheWay = leaving.filter((address) => !portOf(address).endsWith("/0") && ports.has(portOf(address)));
    const fresh = coming.filter((address) => !this.#requested.has(String(address)));
    const before = await this.#close(inTheWay);
    await this.#open(coming);
    const refused = fresh.filter((address) => !opened.has(String(address)));
    if (refused.length > 0) {
      const reasons = refused.map((address) => notListenedOn([String(address), failures.get(String(address))]));
      await this.#close(fresh.map(String));
      await this.#open(before);
      for (const address of refused) failures.delete(String(address));
      throw failure("LISTEN_FAILED", { reason: reasons.join("; ") });
    }
    await this.#close(leaving);
    for (const address of [...failures.keys()]) if (!next.has(address)) failures.delete(address);
    for (const [address, reason] of leftOut) failures.set(address, reason);
    this.#requested = new Set([...next.keys(), ...leftOut.keys()]);
  }

  async #open(addresses: readonly Multiaddr[]): Promise<void> {
    const { record, hasTransport, listen } = this.#deps;
    for (const address of addresses) record.failures.delete(String(address));
    this.#noteUnsupported(addresses);
    const possible = addresses.filter(hasTransport);
    if (possible.length > 0) await listen(possible);
  }

  #noteUnsupported(addresses: readonly Multiaddr[]): void {
    const { record, hasTransport } = this.#deps;
    for (const address of addresses) {
      if (!hasTransport(address)) record.failures.set(String(address), "no enabled transport handles it");
    }
  }

  /** Closes listeners, and returns the addresses that were open. */
  async #close(addresses: readonly string[]): Promise<Multiaddr[]> {
    const closed: Multiaddr[] = [];
    for (const text of addresses) {
      const listener = this.#deps.record.opened.get(text);
      if (listener === undefined) continue;
      this.#deps.record.opened.delete(text);
      closed.push(parseMultiaddr(text));
      await shut(listener);
    }
    return closed;
  }
}

const notListenedOn = ([address, reason]: readonly [string, string | undefined]): string =>
  `${address} is not listened on: ${reason}`;

/**
 * Closes a listener. Connections of a TCP listener continue, because it can just stop accepting.
 */
async function shut(listener: Listener): Promise<void> {
  const { pause } = listener as { pause?: (permanent: boolean) => void };
  if (pause === undefined) await listener.close();
  else pause.call(listener, true);
}
