/**
 * The settings of a gateway. The host's options contain them for its ports, and the repo's config
 * for its own address.
 */
import type { ResponseHeaders } from "../../core/types.ts";
import type { PublicGateways } from "./hosts/public_gateways.ts";

export interface GatewaySettings {
  /**
   * Whether to serve only content on this machine, so that clients cannot make the node contact
   * peers.
   */
  readonly noFetch: boolean;
  /**
   * Whether files, pages and documents are served, in addition to responses that clients can
   * verify.
   */
  readonly deserialized: boolean;
  /** Whether browsers get an error page. Other clients get a line of text. */
  readonly htmlErrors: boolean;
  /** Headers of every response, including CORS. */
  readonly headers: ResponseHeaders;
  /** Maximum number of concurrent requests; 0 for no limit. */
  readonly maxRequests: number;
  /** Milliseconds without a byte after which a response is abandoned; 0 for no limit. */
  readonly stallTime: number;
  /** Maximum time of a response in milliseconds; 0 for no limit. */
  readonly totalTime: number;
  /** Hosts that are known as gateways. */
  readonly publicGateways: PublicGateways;
  /** Whether any other host is a website if it has a DNSLink. */
  readonly dnslink: boolean;
  /** Whether clients may ask the node who has a block, where a peer is, and for IPNS records. */
  readonly routing: boolean;
  /** Whether PUT, POST and DELETE create new content. */
  readonly writable: boolean;
  /** Size in bytes of the largest file with range support; 0 for no limit. */
  readonly maxRangeFile: number;
}

/**
 * Node's timers use 31 bits of milliseconds, and fire at once for longer times. So times are
 * limited to 24 days.
 */
export const timerTime = (milliseconds: number): number => Math.min(milliseconds, 2 ** 31 - 1);

const METHODS = ["GET", "HEAD", "OPTIONS"];
const ALLOWED = ["Content-Type", "Range", "User-Agent", "X-Requested-With"];
const EXPOSED = [
  "Content-Length",
  "Content-Range",
  "X-Chunked-Output",
  "X-Ipfs-Path",
  "X-Ipfs-Roots",
  "X-Stream-Output",
];

/**
 * Lists that an operator extends rather than replaces, because browsers could not use the gateway
 * without the defaults.
 */
const joined: Readonly<Record<string, readonly string[]>> = {
  access_control_allow_methods: METHODS,
  access_control_allow_headers: ALLOWED,
  access_control_expose_headers: EXPOSED,
};

/**
 * Any page may read public content. `extra` contains the operator's headers; their names can have
 * any spelling.
 */
export function responseHeaders(extra: Readonly<Record<string, string | readonly string[]>> = {}): ResponseHeaders {
  const headers: ResponseHeaders = {
    access_control_allow_origin: "*",
    access_control_allow_methods: METHODS.join(", "),
    access_control_allow_headers: ALLOWED.join(", "),
    access_control_expose_headers: EXPOSED.join(", "),
  };
  for (const [name, value] of Object.entries(extra)) {
    const key = name.toLowerCase().replaceAll("-", "_");
    const own = joined[key];
    const values = [value].flat();
    if (own !== undefined) headers[key] = [...new Set([...own, ...values])].sort().join(", ");
    else headers[key] = values.length === 1 ? values[0] : values;
  }
  return headers;
}
