/** The listening addresses of a running libp2p, as the configuration says, also after it has changed. */
import type { Listener } from "@libp2p/interface";
import { NodeError } from "../../util/errors.ts";
import { type Multiaddr, parseMultiaddr } from "./multiaddr.ts";

/** What transports report: each listener by the address that was asked for, and why there is none. */
export interface ListenRecord {
  readonly opened: Map<string, Listener>;
  readonly failures: Map<string, string>;
}

export interface ListeningDeps {
  readonly record: ListenRecord;
  /** Opens addresses; what cannot be is in the record. */
  readonly listen: (addresses: Multiaddr[]) => Promise<void>;
  readonly hasTransport: (address: Multiaddr) => boolean;
}

/** What has the same port is closed before it is opened otherwise: 0.0.0.0 and 127.0.0.1 do not go side by side. */
const portOf = (address: string): string => /\/(?:tcp|udp)\/\d+/.exec(address)?.[0] ?? address;

export class Listening {
  readonly #deps: ListeningDeps;
  /** Asked for, whether or not they are listened on. */
  #asked: ReadonlySet<string>;

  constructor(deps: ListeningDeps, asked: readonly Multiaddr[]) {
    this.#deps = deps;
    this.#asked = new Set(asked.map(String));
    this.#noteUnheard(asked);
  }

  /**
   * Listens on these addresses and no others. New ones are opened before old ones are closed; connections stay, but for
   * those of WebSocket addresses that go.
   *
   * @throws NodeError when one that was not asked for before cannot be listened on: all is as it was then
   */
  async change(wanted: readonly Multiaddr[]): Promise<void> {
    const { opened, failures } = this.#deps.record;
    const next = new Map(wanted.map((address) => [String(address), address]));
    const leaving = [...opened.keys()].filter((address) => !next.has(address));
    const coming = wanted.filter((address) => !opened.has(String(address)));
    const ports = new Set(coming.map((address) => portOf(String(address))));
    const inTheWay = leaving.filter((address) => !portOf(address).endsWith("/0") && ports.has(portOf(address)));
    const fresh = coming.filter((address) => !this.#asked.has(String(address)));
    const before = await this.#close(inTheWay);
    await this.#open(coming);
    const refused = fresh.filter((address) => !opened.has(String(address)));
    if (refused.length > 0) {
      const reasons = refused.map((address) => `${address} is not listened on: ${failures.get(String(address))}`);
      await this.#close(fresh.map(String));
      await this.#open(before);
      for (const address of refused) failures.delete(String(address));
      throw new NodeError(reasons.join("; "));
    }
    await this.#close(leaving);
    for (const address of [...failures.keys()]) if (!next.has(address)) failures.delete(address);
    this.#asked = new Set(next.keys());
  }

  async #open(addresses: readonly Multiaddr[]): Promise<void> {
    const { record, hasTransport, listen } = this.#deps;
    for (const address of addresses) record.failures.delete(String(address));
    this.#noteUnheard(addresses);
    const possible = addresses.filter(hasTransport);
    if (possible.length > 0) await listen(possible);
  }

  #noteUnheard(addresses: readonly Multiaddr[]): void {
    const { record, hasTransport } = this.#deps;
    for (const address of addresses) {
      if (!hasTransport(address)) record.failures.set(String(address), "no enabled transport handles it");
    }
  }

  /** Returns those that were open. */
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

/** Of TCP the connections go on: its listener can stop accepting. */
async function shut(listener: Listener): Promise<void> {
  const { pause } = listener as { pause?: (permanent: boolean) => void };
  if (pause === undefined) await listener.close();
  else pause.call(listener, true);
}
