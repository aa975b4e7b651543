/** Parses and formats multiaddrs, with go-ipfs's error texts. */
import { isIPv4, isIPv6 } from "node:net";
import {
  CODE_P2P,
  CODE_UNIX,
  type Component,
  type Multiaddr,
  multiaddr,
  type ProtocolCodec,
  registry,
} from "@multiformats/multiaddr";
import { type PeerId, parsePeerId } from "../../formats/peer_id.ts";
import { failure } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";
import { trimEnd } from "../../util/trim.ts";

export type { Multiaddr };

/** A peer and one of its addresses, without its id. */
export interface PeerAddress {
  readonly id: PeerId;
  /** Undefined if only the id is given. */
  readonly address: Multiaddr | undefined;
}

/**
 * Maximum length of an address in characters: the longest socket path, a peer id, and the parts
 * around them.
 */
const MAX_ADDRESS_LENGTH = 8192;

/**
 * Parses and normalizes an address: `/ipfs/<id>` and `/p2p/<CID>` become `/p2p/<base58>`. @throws
 * NodeError `failed to parse multiaddr …`
 */
export function parseMultiaddr(text: string): Multiaddr {
  if (text.length > MAX_ADDRESS_LENGTH) {
    throw failure("ADDRESS_INVALID", {
      reason: `failed to parse multiaddr: ${text.length} characters are more than ${MAX_ADDRESS_LENGTH}`,
    });
  }
  const trimmed = trimEnd(text, "/");
  try {
    // The conversion to bytes normalizes IPv6 addresses, which have several texts.
    return multiaddr(multiaddr(componentsOf(trimmed)).bytes);
  } catch (error) {
    throw failure(
      "ADDRESS_INVALID",
      { reason: `failed to parse multiaddr ${quote(trimmed)}: ${(error as Error).message}` },
      error,
    );
  }
}

function componentsOf(text: string): Component[] {
  if (text === "") throw new Error("empty multiaddr");
  if (!text.startsWith("/")) throw new Error("must begin with /");
  const parts = text.split("/").slice(1);
  const components: Component[] = [];
  for (let name = parts.shift(); name !== undefined; name = parts.shift()) {
    const codec = codecNamed(name);
    const { code } = codec;
    if (codec.size === undefined || codec.size === 0) {
      components.push({ code, name: codec.name });
      continue;
    }
    if (parts.length === 0) throw new Error("unexpected end of multiaddr");
    const value = codec.name === "unix" ? `/${parts.splice(0).join("/")}` : (parts.shift() as string);
    components.push({ code, name: codec.name, value: checked(codec, value) });
  }
  return components;
}

function codecNamed(name: string): ProtocolCodec {
  try {
    return registry.getProtocol(name);
  } catch {
    throw new Error(`unknown protocol ${name}`);
  }
}

function checked(codec: ProtocolCodec, value: string): string {
  try {
    const known = checks[codec.name];
    if (known !== undefined) return known(value);
    if (value === "") throw new Error("empty value");
    codec.validate?.(value);
    codec.valueToBytes?.(value);
    return codec.stringToValue?.(value) ?? value;
  } catch (error) {
    const reason = (error as Error).message;
    throw new Error(`invalid value ${quote(value)} for protocol ${codec.name}: ${reason}`, { cause: error });
  }
}

const port = (value: string): string => {
  const failed = "failed to parse port addr";
  if (!/^[+-]?\d+$/.test(value)) throw new Error(`${failed}: strconv.Atoi: parsing ${quote(value)}: invalid syntax`);
  if (Number(value) < 0) throw new Error(`${failed}: less than 0`);
  if (Number(value) > 65_535) throw new Error(`${failed}: greater than 65536`);
  return String(Number(value));
};

/** Functions that validate and normalize the values of protocols. */
const checks: Readonly<Record<string, (value: string) => string>> = {
  ip4(value) {
    if (!isIPv4(value)) throw new Error(`failed to parse ip4 addr: ${value}`);
    return value;
  },
  ip6(value) {
    if (!isIPv6(value) || value.includes("%")) throw new Error(`failed to parse ip6 addr: ${value}`);
    return value;
  },
  // A path stays as it is: nothing in it is escaped.
  unix: (value) => value,
  tcp: port,
  udp: port,
  dccp: port,
  sctp: port,
  p2p(value) {
    try {
      return parsePeerId(value).toString();
    } catch (error) {
      const reason = (error as Error).message.replace("failed to parse peer ID: ", "");
      throw new Error(`failed to parse p2p addr: ${value} ${reason}`);
    }
  },
};

/**
 * Formats an address as go-ipfs does, with the slashes of a socket path. `parseMultiaddr` parses
 * the result to the same address.
 */
export function addressText(address: Multiaddr): string {
  const parts = address.getComponents();
  const at = parts.findIndex(({ code }) => code === CODE_UNIX);
  if (at < 0) return address.toString();
  const before = at === 0 ? "" : multiaddr(parts.slice(0, at)).toString();
  return `${before}/unix${parts[at]?.value}`;
}

/** Whether an address ends in the id of a peer. */
export const namesPeer = (address: Multiaddr): boolean => address.getComponents().at(-1)?.code === CODE_P2P;

/** Whether an address leads to an HTTP server instead of a peer. */
export const isHttp = (address: Multiaddr): boolean =>
  /^https?$/.test(transportOf(address).getComponents().at(-1)?.name ?? "");

/** Separates an address from the id at its end. @throws NodeError `invalid p2p multiaddr` */
export function splitPeer(address: Multiaddr): PeerAddress {
  const components = address.getComponents();
  const last = components.pop();
  if (last?.code !== CODE_P2P || last.value === undefined)
    throw failure("ADDRESS_INVALID", { reason: "invalid p2p multiaddr" });
  return { id: parsePeerId(last.value), address: components.length === 0 ? undefined : multiaddr(components) };
}

/**
 * Returns the peer and address of a text that ends in the id. @throws NodeError for any other text
 */
export const parsePeerAddress = (text: string): PeerAddress => splitPeer(parseMultiaddr(text));

/** Removes the id at the end of an address, if there is one. */
export function transportOf(address: Multiaddr): Multiaddr {
  return namesPeer(address) ? multiaddr(address.getComponents().slice(0, -1)) : address;
}

export const withPeer = (address: Multiaddr, id: PeerId): Multiaddr => address.encapsulate(`/p2p/${id}`);

/** Groups addresses by peer, in the order in which peers first occur. */
export function byPeer(addresses: readonly PeerAddress[]): readonly { id: PeerId; addresses: readonly Multiaddr[] }[] {
  const groups = new Map<string, { id: PeerId; addresses: Multiaddr[] }>();
  for (const { id, address } of addresses) {
    const group = groups.get(id.toString()) ?? { id, addresses: [] };
    groups.set(id.toString(), group);
    if (address !== undefined) group.addresses.push(address);
  }
  return [...groups.values()];
}
