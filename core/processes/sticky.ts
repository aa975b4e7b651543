/**
 * Chooses the process that serves one client of sticky modules: by a hash of the client's address
 * or cookie.
 */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { TrustedProxies } from "../http/policy/proxies.ts";
import type { NodeRequest, NodeResponse } from "../util/node_messages.ts";
import { clientOf } from "../util/rate_limit.ts";
import type { StickyPaths } from "./messages.ts";
import { sharedPaths } from "./shared_paths.ts";

/** Distinguishes browsers behind one address. Its value is random, and only its hash is used. */
export const STICKY_COOKIE = "modhost_process";

const ID_BYTES = 8;
const cookie = new RegExp(`(?:^|;)\\s*${STICKY_COOKIE}=([0-9a-f]{${ID_BYTES * 2}})\\s*(?:;|$)`);

const nowhere = (): boolean => false;

/** Returns a number from 1 to `count`, by an FNV-1a hash. */
export function processFor(client: string, count: number): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < client.length; at += 1) hash = Math.imul(hash ^ client.charCodeAt(at), 0x01000193);
  return 1 + (((hash ^ (hash >>> 16)) >>> 0) % count);
}

/**
 * Hashes an IPv4 address, or the first 64 bits of an IPv6 address, because one client has all
 * addresses of such a network.
 */
export const processForAddress = (address: string, count: number): number => processFor(clientOf(address), count);

/** Returns a random id for a client, whose hash selects the process `number`. */
export function idFor(number: number, count: number): string {
  for (;;) {
    const id = randomBytes(ID_BYTES).toString("hex");
    if (processFor(id, count) === number) return id;
  }
}

export class StickyClients {
  readonly #own: number;
  readonly #count: number;
  #byAddress: (path: string) => boolean = nowhere;
  #byCookie: (path: string) => boolean = nowhere;
  /** Whether any module is sticky. */
  isUsed = false;
  /** Whether any module recognizes clients by a cookie. */
  hasCookies = false;

  /** `own`: the number of this process among `count`. */
  constructor(own: number, count: number) {
    this.#own = own;
    this.#count = count;
  }

  use({ address, cookie }: StickyPaths): void {
    this.hasCookies = isAny(cookie);
    this.isUsed = this.hasCookies || isAny(address);
    this.#byAddress = sharedPaths(address);
    this.#byCookie = sharedPaths(cookie);
  }

  /**
   * Returns the number of the process that serves a request; undefined if any process may, and for
   * clients without the cookie.
   */
  processFor(path: string, { socket, rawHeaders }: NodeRequest, proxies: TrustedProxies): number | undefined {
    if (this.#byCookie(path)) {
      const id = idIn(rawHeaders);
      return id === undefined ? undefined : processFor(id, this.#count);
    }
    if (!this.#byAddress(path)) return undefined;
    return processForAddress(proxies.client(socket.remoteAddress ?? "", false, rawHeaders).ip, this.#count);
  }

  /**
   * Returns the number of the process for a connection whose first request has this path; undefined
   * if the connection may carry requests of several clients.
   */
  processForConnection(path: string, socket: Socket, proxies: TrustedProxies): number | undefined {
    if (!this.#byAddress(path) || this.#byCookie(path)) return undefined;
    const { ip, isProxied } = proxies.client(socket.remoteAddress ?? "", false, []);
    return isProxied ? undefined : processForAddress(ip, this.#count);
  }

  /** Gives a client without the cookie one that leads it back to this process. */
  welcome(path: string, request: NodeRequest, response: NodeResponse, proxies: TrustedProxies): void {
    if (!this.#byCookie(path) || idIn(request.rawHeaders) !== undefined) return;
    const { remoteAddress = "", encrypted = false } = request.socket as Socket & { encrypted?: boolean };
    const { secure } = proxies.client(remoteAddress, encrypted, request.rawHeaders);
    const value = `${STICKY_COOKIE}=${idFor(this.#own, this.#count)}; Path=/; HttpOnly; SameSite=Lax`;
    response.setHeader("Set-Cookie", secure ? `${value}; Secure` : value);
  }
}

const isAny = ({ everything, exact, below }: StickyPaths["address"]) => everything || exact.length + below.length > 0;

function idIn(raw: readonly string[]): string | undefined {
  for (let at = 0; at < raw.length; at += 2) {
    if ((raw[at] as string).toLowerCase() !== "cookie") continue;
    const id = cookie.exec(raw[at + 1] as string)?.[1];
    if (id !== undefined) return id;
  }
  return undefined;
}
