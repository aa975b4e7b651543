/** Determines which addresses are listened on, and why others are not. */
import type { Transport } from "@libp2p/interface";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { failure } from "../../util/errors.ts";
import { withAddressInErrors } from "./dial_error.ts";
import type { ListenRecord } from "./listening.ts";
import { type Multiaddr, parseMultiaddr } from "./multiaddr.ts";

/**
 * Returns the addresses of `Addresses.Swarm` that can be listened on.
 *
 * @param quicMissing why QUIC is not available; undefined if it is @param failures receives the
 * reason for each omitted address @throws NodeError for an entry that is not an address
 */
export function listenAddresses(
  config: Pick<ConfigFile, "value">,
  quicMissing: string | undefined,
  failures: Map<string, string>,
): Multiaddr[] {
  const texts = config.value("Addresses.Swarm") ?? [];
  let addresses: Multiaddr[];
  try {
    addresses = texts.map(parseMultiaddr);
  } catch (error) {
    throw failure("CONFIG_INVALID", { reason: `failure to parse config.Addresses.Swarm: [${texts.join(" ")}]` }, error);
  }
  if (quicMissing !== undefined && config.value("Swarm.Transports.Network.QUIC") === true)
    failures.set("QUIC", quicMissing);
  if (config.value("Swarm.EnableAutoRelay")) addresses.push(parseMultiaddr("/p2p-circuit"));
  return addresses.filter((address) => {
    const names = address.getComponents().map(({ name }) => name);
    if (names.includes("quic")) failures.set(String(address), "draft-29 QUIC is not supported");
    else if (names.includes("quic-v1") && quicMissing !== undefined) failures.set(String(address), quicMissing);
    else return true;
    return false;
  });
}

/** Announced addresses in the form that libp2p accepts. */
export interface AnnouncedAddresses {
  /** If this list is not empty, exactly its addresses are announced. */
  readonly announce: string[];
  /** Addresses to announce in addition to those that the node listens on. */
  readonly appendAnnounce: string[];
}

/**
 * Reads `Addresses.Announce` and `AppendAnnounce`. @throws NodeError for an entry that is not an
 * address
 */
export function announcedAddresses(config: Pick<ConfigFile, "value">): AnnouncedAddresses {
  const [instead, additional] = (["Addresses.Announce", "Addresses.AppendAnnounce"] as const).map((path) =>
    (config.value(path) ?? []).map((text) => String(parseMultiaddr(text))),
  ) as [string[], string[]];
  return { announce: instead.length === 0 ? [] : [...instead, ...additional], appendAnnounce: additional };
}

/**
 * Makes a transport record the addresses that it listens on, and those that it cannot listen on,
 * because libp2p continues without reporting them.
 */
export function recordListening(transport: Transport, { opened, failures }: ListenRecord): Transport {
  const { createListener } = transport;
  transport.createListener = (options) => {
    const listener = createListener.call(transport, options);
    const { listen } = listener;
    listener.listen = async (address) => {
      try {
        await listen.call(listener, address);
        opened.set(String(address), listener);
      } catch (error) {
        failures.set(String(address), (error as Error).message);
        throw error;
      }
    };
    return listener;
  };
  return withAddressInErrors(transport);
}
