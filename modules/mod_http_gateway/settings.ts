/** What an operator decides of a gateway: by options for the ports of the host, by the repo's config at its own address. */
import type { ResponseHeaders } from "../../core/types.ts";
import type { PublicGateways } from "./hosts/public_gateways.ts";

export interface GatewaySettings {
  /** Only what is on this machine: nobody makes the node ask its peers. */
  readonly noFetch: boolean;
  /** Files, pages and documents are served, and not only what a client can check by its CID. */
  readonly deserialized: boolean;
  /** Browsers get a page for an error, everybody else a line of text. */
  readonly htmlErrors: boolean;
  /** Headers of every answer, those of CORS among them. */
  readonly headers: ResponseHeaders;
  /** Requests at a time; 0: any number. */
  readonly maxRequests: number;
  /** Milliseconds without a byte after which an answer is given up; 0: none. */
  readonly stallTime: number;
  /** Milliseconds for a whole answer; 0: none. */
  readonly totalTime: number;
  /** Hosts that are known as gateways. */
  readonly publicGateways: PublicGateways;
  /** Any other host is a website, where the DNS has a link for it. */
  readonly dnslink: boolean;
  /** Others may ask the node who has a block, where a peer is, and for records of names. */
  readonly routing: boolean;
  /** PUT, POST and DELETE make new content. */
  readonly writable: boolean;
  /** Bytes of the largest file of which ranges are served; 0: of any. */
  readonly maxRangeFile: number;
}

/** Node's timers take at most 31 bits of milliseconds, and fire at once for more: 24 days, for whatever is longer. */
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

/** Lists that an operator adds to, and does not replace: browsers could not use the gateway without what is in them. */
const joined: Readonly<Record<string, readonly string[]>> = {
  access_control_allow_methods: METHODS,
  access_control_allow_headers: ALLOWED,
  access_control_expose_headers: EXPOSED,
};

/** Any page may read what is public anyway; `extra` are the operator's, by name in any spelling. */
export function answerHeaders(extra: Readonly<Record<string, string | readonly string[]>> = {}): ResponseHeaders {
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
