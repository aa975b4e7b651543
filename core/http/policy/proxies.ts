import { isIP } from "node:net";
import { headerOf } from "../../util/header_fields.ts";
import { addressesOf } from "./addresses.ts";

/** Facts about the client, as trusted proxies report them. */
export interface ClientFacts {
  readonly ip: string;
  readonly secure: boolean;
  /** Host and port that the client requested, when a trusted proxy reports them. */
  readonly host: string | undefined;
  /** A trusted proxy sent the request. */
  readonly isProxied: boolean;
}

/**
 * Reads forwarding headers, but only those that a trusted peer sent, so that nobody else can forge
 * an address.
 */
export class TrustedProxies {
  /** Whether the address is that of a trusted proxy. */
  readonly trusts: (address: string) => boolean;
  readonly #legacy: boolean;
  readonly #peers = new Map<string, Peer>();

  /** `entries` are addresses or CIDR ranges; throws OPTION_INVALID for anything else. */
  constructor(entries: readonly string[], legacy = true) {
    this.trusts = addressesOf(entries, "trusted_proxies");
    this.#legacy = legacy;
  }

  /**
   * Returns facts about the client of a request. `raw`: the header lines. Only the exact names
   * count: many proxies pass on a client's own `X_Forwarded_For`, which has the same name in a
   * table of headers.
   */
  client(peer: string, encrypted: boolean, raw: readonly string[]): ClientFacts {
    const { address, trusted } = this.#peer(peer);
    let ip = address;
    let secure = encrypted;
    let host: string | undefined;
    if (!trusted || !hasForwarding(raw)) return { ip, secure, host, isProxied: trusted };
    const hops = this.#legacy ? legacyHops(raw) : forwardedHops(headerOf(raw, "forwarded"));
    for (const hop of hops.reverse()) {
      if (hop.proto !== undefined) secure = secureSchemes.has(hop.proto);
      host = hop.host || host;
      const next = hop.for === undefined ? undefined : plainAddress(hop.for);
      if (next === undefined || isIP(next) === 0) break;
      ip = next;
      if (!this.trusts(next)) break;
    }
    return { ip, secure, host, isProxied: true };
  }

  /**
   * Returns facts about a peer. They are cached within limits, because each request of a connection
   * needs them.
   */
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

/** Traefik reports `wss` for a websocket. */
const secureSchemes: ReadonlySet<string> = new Set(["https", "wss"]);

const forwarding = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];
const forwardingLengths: ReadonlySet<number> = new Set(forwarding.map(({ length }) => length));

/**
 * Whether any line is a forwarding header. Mostly there is none, even from a trusted address, which
 * may be this machine's own.
 */
function hasForwarding(raw: readonly string[]): boolean {
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    if (forwardingLengths.has(name.length) && forwarding.includes(name.toLowerCase())) return true;
  }
  return false;
}

interface Hop {
  readonly for: string | undefined;
  readonly proto: string | undefined;
  readonly host: string | undefined;
}

/** Scheme and host come from the nearest proxy, which is the last in each list. */
function legacyHops(raw: readonly string[]): Hop[] {
  const list = (name: string) => {
    const texts = headerOf(raw, name)?.split(",") ?? [];
    return texts.map((text) => text.trim()).filter((text) => text !== "");
  };
  const addresses = list("x-forwarded-for");
  const last = {
    for: addresses.pop(),
    proto: list("x-forwarded-proto").at(-1)?.toLowerCase(),
    host: list("x-forwarded-host").at(-1),
  };
  return [...addresses.map((address) => ({ for: address, proto: undefined, host: undefined })), last];
}

/** RFC 7239: `for=192.0.2.60;proto=https;host=example.org, for="[2001:db8::1]:80"`. */
function forwardedHops(value: string | undefined): Hop[] {
  if (value === undefined) return [];
  const elements = partsFromEnd(value, ",").reverse();
  return elements.map((element) => {
    const pairs = new Map<string, string>();
    for (const pair of partsFromEnd(element, ";").reverse()) {
      const [, name = "", text = ""] = /^([^=]*)=(.*)$/s.exec(pair) ?? [];
      pairs.set(name.trim().toLowerCase(), text.trim().replace(/^"(.*)"$/s, "$1"));
    }
    return { for: pairs.get("for"), proto: pairs.get("proto")?.toLowerCase(), host: pairs.get("host") };
  });
}

/**
 * Splits a text outside of quotes, the last part first. The nearest proxy has written the end of
 * the line. A quote that the client opened, closed or not, must not reach into it.
 */
function partsFromEnd(text: string, separator: "," | ";"): string[] {
  const parts: string[] = [];
  let end = text.length;
  let isQuoted = false;
  for (let at = end - 1; at >= 0; at -= 1) {
    if (text[at] === '"' && !isEscaped(text, at)) isQuoted = !isQuoted;
    if (text[at] !== separator || isQuoted) continue;
    parts.push(text.slice(at + 1, end));
    end = at;
  }
  parts.push(text.slice(0, end));
  return parts;
}

/** Whether an odd number of backslashes precedes the character. */
function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text[first - 1] === "\\") first -= 1;
  return (at - first) % 2 === 1;
}

/** Returns an address without brackets, port, zone or IPv4-in-IPv6 prefix. */
export function plainAddress(text: string): string {
  const bare = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  const address = bare.replace(/%.*$/, "");
  return /ffff/i.test(address) ? mappedIpv4(address) : address;
}

/**
 * Converts an IPv4 address that is written as an IPv6 address, in any form. Other addresses stay
 * unchanged.
 */
function mappedIpv4(address: string): string {
  const dotted = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (dotted !== undefined || isIP(address) !== 6) return dotted ?? address;
  const [, high, low] = /^\[::ffff:([\da-f]+):([\da-f]+)\]$/.exec(new URL(`http://[${address}]`).hostname) ?? [];
  if (high === undefined || low === undefined) return address;
  return [high, low].flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255]).join(".");
}
