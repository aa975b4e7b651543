import { isIP } from "node:net";
import type { RequestHeaders } from "../types.ts";
import { addressesOf } from "./addresses.ts";

/** Who the client is, seen from behind trusted proxies. */
export interface ClientFacts {
  readonly ip: string;
  readonly secure: boolean;
  /** A trusted proxy sent the request. */
  readonly isProxied: boolean;
}

/** Reads forwarding headers, and only those that a trusted peer sent: nobody else can forge an address. */
export class TrustedProxies {
  /** Is it the address of a trusted proxy? */
  readonly trusts: (address: string) => boolean;
  readonly #legacy: boolean;
  readonly #peers = new Map<string, Peer>();

  /** `entries` are addresses or CIDR ranges; throws OPTION_INVALID for anything else. */
  constructor(entries: readonly string[], legacy = true) {
    this.trusts = addressesOf(entries, "trusted_proxies");
    this.#legacy = legacy;
  }

  client(peer: string, encrypted: boolean, headers: RequestHeaders): ClientFacts {
    const { address, trusted } = this.#peer(peer);
    let ip = address;
    let secure = encrypted;
    if (!trusted) return { ip, secure, isProxied: false };
    const { x_forwarded_for: addresses, x_forwarded_proto: protocol, forwarded } = headers;
    if (addresses === undefined && protocol === undefined && forwarded === undefined)
      return { ip, secure, isProxied: true };
    const hops = this.#legacy ? legacyHops(addresses, protocol) : forwardedHops(forwarded);
    for (const hop of hops.reverse()) {
      if (hop.proto !== undefined) secure = hop.proto === "https";
      const next = hop.for === undefined ? undefined : plainAddress(hop.for);
      if (next === undefined || isIP(next) === 0) break;
      ip = next;
      if (!this.trusts(next)) break;
    }
    return { ip, secure, isProxied: true };
  }

  /** Peers come back with each request of a connection: what was found of them is kept, within bounds. */
  #peer(peer: string): Peer {
    let known = this.#peers.get(peer);
    if (known === undefined) {
      const address = plainAddress(peer);
      known = { address, trusted: this.trusts(address) };
      if (this.#peers.size >= MAX_REMEMBERED_PEERS) this.#peers.clear();
      this.#peers.set(peer, known);
    }
    return known;
  }
}

interface Peer {
  readonly address: string;
  readonly trusted: boolean;
}

const MAX_REMEMBERED_PEERS = 1000;

interface Hop {
  readonly for: string | undefined;
  readonly proto: string | undefined;
}

function legacyHops(addresses: string | undefined, protocol: string | undefined): Hop[] {
  const proto = protocol?.split(",").at(-1)?.trim().toLowerCase();
  const hops: Hop[] = (addresses ?? "")
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .map((text) => ({ for: text, proto: undefined }));
  const last = hops.pop();
  return proto === undefined && last === undefined ? hops : [...hops, { for: last?.for, proto }];
}

/** RFC 7239: `for=192.0.2.60;proto=https, for="[2001:db8::1]:80"`. */
function forwardedHops(value: string | undefined): Hop[] {
  if (value === undefined) return [];
  return value.split(",").map((element) => {
    const pairs = new Map<string, string>();
    for (const pair of element.split(";")) {
      const [name = "", text = ""] = pair.split("=", 2);
      pairs.set(name.trim().toLowerCase(), text.trim().replace(/^"(.*)"$/, "$1"));
    }
    return { for: pairs.get("for"), proto: pairs.get("proto")?.toLowerCase() };
  });
}

/** An address without brackets, port, zone or IPv4-in-IPv6 prefix. */
export function plainAddress(text: string): string {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  return bare.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "").replace(/%.*$/, "");
}
