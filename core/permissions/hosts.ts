/** Hosts with ports: how a permission to connect is written, and what it covers. */
import { isIP, isIPv4, isIPv6 } from "node:net";
import { domainToASCII } from "node:url";
import { unbracketed } from "../util/brackets.ts";

/** A host that a permission names. */
export interface HostPort {
  /** In lower case and ASCII; an address in its shortest form, without brackets. */
  readonly host: string;
  readonly port: number | "*";
  readonly isAddress: boolean;
}

/** A connection that a module requests. */
export interface Destination {
  /** A name, or an address. */
  readonly host: string;
  readonly port: number;
}

const written = /^(\[[^\]]*\]|[^:[\]]*):(\d{1,5}|\*)$/;
const form = 'it must be a host and a port, such as "api.example.org:443"';

/**
 * Returns the parts of an item, or why it is wrong, as the end of the sentence "x is y, but ...".
 */
export function parseHostPort(item: string): HostPort | string {
  const [, name = "", portText = ""] = written.exec(item) ?? [];
  const port = portText === "*" ? "*" : Number(portText);
  if (name === "" || (port !== "*" && (port < 1 || port > 65_535))) {
    return isIPv6(item.replace(/:\d+$/, "")) ? `${form} or "[::1]:443"` : form;
  }
  const inner = unbracketed(name);
  if (isIP(inner) !== 0) return { host: plainAddress(inner), port, isAddress: true };
  const host = plainName(inner);
  if (host === undefined || name.startsWith("[")) return form;
  if (host === "localhost" || host.endsWith(".localhost")) {
    return 'it is this machine, which is granted only by address, such as "127.0.0.1:8080"';
  }
  const labels = host.split(".");
  if (labels.slice(1).includes("*") || (labels[0] === "*" && labels.length < 2)) {
    return 'a wildcard stands for the first label alone, such as "*.example.org:443"';
  }
  return { host, port, isAddress: false };
}

/**
 * Returns the item that lets a module connect to a destination; undefined if none does. The
 * addresses that a name resolves to are not known here: the broker of the network checks each.
 */
export function connectItem(items: readonly string[], { host, port }: Destination): string | undefined {
  const name = unbracketed(host);
  const address = isIP(name) === 0 ? undefined : plainAddress(name);
  const covers = (item: string) => {
    const granted = parseHostPort(item);
    if (typeof granted === "string" || (granted.port !== "*" && granted.port !== port)) return false;
    return granted.isAddress ? granted.host === address : address === undefined && matchesName(granted.host, name);
  };
  return items.find(covers);
}

function matchesName(granted: string, host: string): boolean {
  const name = plainName(host);
  if (name === undefined || name.includes("*")) return false;
  if (!granted.startsWith("*.")) return name === granted;
  const dot = name.indexOf(".");
  return dot > 0 && name.slice(dot) === granted.slice(1);
}

/**
 * Returns a host name in lower case and ASCII, without a final dot; undefined for anything else.
 */
function plainName(text: string): string | undefined {
  const wildcard = text.startsWith("*.") ? "*." : "";
  const ascii = domainToASCII(text.slice(wildcard.length)).replace(/\.$/, "");
  const isName = ascii.split(".").every((label) => /^(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?|\*)$/.test(label));
  // A resolver reads names such as 127.1 or 0x7f000001 as addresses.
  return isName && !/(?:^|\.)(?:\d+|0x[\da-f]*)$/.test(ascii) ? wildcard + ascii : undefined;
}

/**
 * Returns the name that a module's text for a host stands for, or the address as it is; undefined
 * for anything else. Only this form may be connected to: a resolver can read another one in a
 * different way, such as `api.example.org/.example.net`.
 */
export function hostToDial(text: string): string | undefined {
  return isIP(text) === 0 ? plainName(text) : text;
}

/** Returns an address in its shortest form; one of IPv4 that is written as IPv6 becomes IPv4. */
function plainAddress(address: string): string {
  if (isIPv4(address)) return address;
  // The parser of URLs takes no zone.
  const host = new URL(`http://[${address.replace(/%.*$/, "")}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/.exec(host) ?? [];
  if (high === undefined || low === undefined) return host;
  const bits = Number.parseInt(high, 16) * 65_536 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 255).join(".");
}
