/** Which addresses are listened on, and why others are not. */
import type { Transport } from "@libp2p/interface";
import type { ConfigFile } from "../../storage/repo/config.ts";
import { NodeError } from "../../util/errors.ts";
import { withAddressInErrors } from "./dial_error.ts";
import type { ListenRecord } from "./listening.ts";
import { type Multiaddr, parseMultiaddr } from "./multiaddr.ts";

/**
 * `Addresses.Swarm`, less what cannot be listened on.
 *
 * @param quicMissing why QUIC is not spoken; undefined when it is
 * @param failures gets the reason for each address that is left out
 * @throws NodeError for an entry that is no address
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
    throw new NodeError(`failure to parse config.Addresses.Swarm: [${texts.join(" ")}]`, { cause: error });
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

/** What is announced, as libp2p takes it. */
export interface AnnouncedAddresses {
  /** Where there are any, exactly these. */
  readonly announce: string[];
  /** Beside those that are listened on. */
  readonly appendAnnounce: string[];
}

/** `Addresses.Announce` and `AppendAnnounce`. @throws NodeError for an entry that is no address */
export function announcedAddresses(config: Pick<ConfigFile, "value">): AnnouncedAddresses {
  const [instead, beside] = (["Addresses.Announce", "Addresses.AppendAnnounce"] as const).map((path) =>
    (config.value(path) ?? []).map((text) => String(parseMultiaddr(text))),
  ) as [string[], string[]];
  return { announce: instead.length === 0 ? [] : [...instead, ...beside], appendAnnounce: beside };
}

/** Has a transport record what it listens on, and what it cannot listen on: libp2p goes on without telling. */
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
