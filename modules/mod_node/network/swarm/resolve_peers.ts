/** Resolves addresses to the peers that they name, directly or through DNS. */
import { Resolver } from "node:dns/promises";
import { failure, NodeError } from "../../util/errors.ts";
import { byPeer, type Multiaddr, namesPeer, type PeerAddress, parseMultiaddr, splitPeer } from "./multiaddr.ts";

/** Timeout of each lookup in milliseconds. */
const LOOKUP_TIMEOUT_MS = 10_000;

export interface NamedPeer {
  readonly id: PeerAddress["id"];
  /** Addresses without the id. */
  readonly addresses: readonly Multiaddr[];
}

/**
 * Resolves to the peers with their addresses. Each address ends in an id, or is a DNS address that
 * resolves to such addresses.
 *
 * @throws NodeError `failed to parse multiaddr …`, `found no ipfs peers at <address>`,
 * `lookup <name> …`
 */
export async function resolvePeers(texts: readonly string[], signal: AbortSignal): Promise<readonly NamedPeer[]> {
  const addresses = texts.map(parseMultiaddr);
  const named = addresses.map((address, at) =>
    namesPeer(address) ? [address] : resolveDns(address, texts[at] as string, signal),
  );
  return byPeer((await Promise.all(named)).flat().map(splitPeer));
}

/** @param text the address as it was given, for messages */
async function resolveDns(address: Multiaddr, text: string, signal: AbortSignal): Promise<readonly Multiaddr[]> {
  const [first] = address.getComponents();
  const name = first?.value ?? "";
  const kind = first?.name ?? "";
  if (!/^dns(?:4|6|addr)?$/.test(kind)) throw noPeers(text);
  const resolver = new Resolver({ timeout: LOOKUP_TIMEOUT_MS, tries: 1 });
  const cancel = () => resolver.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  const timer = setTimeout(cancel, LOOKUP_TIMEOUT_MS);
  const host = kind === "dnsaddr" ? `_dnsaddr.${name}` : name;
  try {
    if (kind !== "dnsaddr") {
      // An IP address names no peer; but if the name does not exist, that error is reported first.
      await (kind === "dns6" ? resolver.resolve6(host) : resolver.resolve4(host));
      throw noPeers(text);
    }
    const records = (await resolver.resolveTxt(host)).map((parts) => parts.join(""));
    const found = records.filter((text) => text.startsWith("dnsaddr=")).map((text) => text.slice("dnsaddr=".length));
    const peers = found.flatMap(parsedOrNone).filter(namesPeer);
    if (peers.length === 0) throw noPeers(text);
    return peers;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof NodeError) throw error;
    throw failure("DNS_FAILED", { reason: lookupFailure(host, resolver, error as NodeJS.ErrnoException) }, error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
  }
}

const noPeers = (text: string) => failure("ADDRESS_WITHOUT_PEERS", { address: text });

/** Returns an empty list for a text that is not an address: a DNS record may contain anything. */
function parsedOrNone(text: string): Multiaddr[] {
  try {
    return [parseMultiaddr(text)];
  } catch {
    return [];
  }
}

function lookupFailure(name: string, resolver: Resolver, { code, message }: NodeJS.ErrnoException): string {
  if (code === "ECANCELLED" || code === "ETIMEOUT") return "context deadline exceeded";
  const [server = ""] = resolver.getServers();
  const at = /:\d+$/.test(server) ? server : `${server}:53`;
  const known = code === "ENOTFOUND" || code === "ENODATA";
  return `lookup ${name} on ${at}: ${known ? "no such host" : message}`;
}
