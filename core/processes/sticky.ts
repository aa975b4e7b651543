/** Which process answers the requests of one client for modules that are sticky: a hash of who it is, no number that it says. */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { NodeRequest, NodeResponse } from "../http/node_messages.ts";
import type { TrustedProxies } from "../http/proxies.ts";
import { clientOf } from "../util/rate_limit.ts";
import type { Sticky } from "./messages.ts";
import { sharedPaths } from "./shared_paths.ts";

/** Tells browsers behind one address apart. It means nothing but what is hashed of it. */
export const STICKY_COOKIE = "modhost_process";

const ID_BYTES = 8;
const cookie = new RegExp(`(?:^|;)\\s*${STICKY_COOKIE}=([0-9a-f]{${ID_BYTES * 2}})\\s*(?:;|$)`);

const nowhere = (): boolean => false;

/** From 1 to `count`: FNV-1a. */
export function placeFor(client: string, count: number): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < client.length; at += 1) hash = Math.imul(hash ^ client.charCodeAt(at), 0x01000193);
  return 1 + (((hash ^ (hash >>> 16)) >>> 0) % count);
}

/** Of an address, or of an IPv6 network of 64 bits, of which one client has all. */
export const placeOfAddress = (address: string, count: number): number => placeFor(clientOf(address), count);

/** A client that the process `place` answers. */
export function idFor(place: number, count: number): string {
  for (;;) {
    const id = randomBytes(ID_BYTES).toString("hex");
    if (placeFor(id, count) === place) return id;
  }
}

export class StickyClients {
  readonly #own: number;
  readonly #count: number;
  #byAddress: (path: string) => boolean = nowhere;
  #byCookie: (path: string) => boolean = nowhere;
  /** Some module asks for it. */
  isAsked = false;
  /** Some module asks for it by a cookie. */
  hasCookies = false;

  /** `own`: the number of this process among `count`. */
  constructor(own: number, count: number) {
    this.#own = own;
    this.#count = count;
  }

  use({ address, cookie }: Sticky): void {
    this.hasCookies = isAny(cookie);
    this.isAsked = this.hasCookies || isAny(address);
    this.#byAddress = sharedPaths(address);
    this.#byCookie = sharedPaths(cookie);
  }

  /** The process that answers a request; undefined where any does, which a client without its cookie is told of afterwards. */
  placeOf(path: string, { socket, rawHeaders }: NodeRequest, proxies: TrustedProxies): number | undefined {
    if (this.#byCookie(path)) {
      const id = idIn(rawHeaders);
      return id === undefined ? undefined : placeFor(id, this.#count);
    }
    if (!this.#byAddress(path)) return undefined;
    return placeOfAddress(proxies.client(socket.remoteAddress ?? "", false, rawHeaders).ip, this.#count);
  }

  /** Of a connection whose first request begins so; undefined where it may bring requests of several clients. */
  placeOfConnection(path: string, socket: Socket, proxies: TrustedProxies): number | undefined {
    if (!this.#byAddress(path) || this.#byCookie(path)) return undefined;
    const { ip, isProxied } = proxies.client(socket.remoteAddress ?? "", false, []);
    return isProxied ? undefined : placeOfAddress(ip, this.#count);
  }

  /** Has the client come back to this process, where it has no cookie yet. */
  welcome(path: string, request: NodeRequest, response: NodeResponse, proxies: TrustedProxies): void {
    if (!this.#byCookie(path) || idIn(request.rawHeaders) !== undefined) return;
    const { remoteAddress = "", encrypted = false } = request.socket as Socket & { encrypted?: boolean };
    const { secure } = proxies.client(remoteAddress, encrypted, request.rawHeaders);
    const value = `${STICKY_COOKIE}=${idFor(this.#own, this.#count)}; Path=/; HttpOnly; SameSite=Lax`;
    response.setHeader("Set-Cookie", secure ? `${value}; Secure` : value);
  }
}

const isAny = ({ everything, exact, below }: Sticky["address"]) => everything || exact.length + below.length > 0;

function idIn(raw: readonly string[]): string | undefined {
  for (let at = 0; at < raw.length; at += 2) {
    if ((raw[at] as string).toLowerCase() !== "cookie") continue;
    const id = cookie.exec(raw[at + 1] as string)?.[1];
    if (id !== undefined) return id;
  }
  return undefined;
}
