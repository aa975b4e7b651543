/**
 * The content that a request is for, whichever host and path the client used. All further work
 * depends on this alone, and on nothing else in the URL.
 */
import { textBytes } from "modhost/node";

export type Namespace = "ipfs" | "ipns";

export interface ContentTarget {
  readonly namespace: Namespace;
  /** A CID or a name, as it was written. */
  readonly root: string;
  /** Names between the root and the visible segments. */
  readonly below?: readonly string[];
  /** Decoded names in the URL; none is empty, `.` or `..`. */
  readonly segments: readonly string[];
  /** Whether the URL ends in a slash. */
  readonly slash: boolean;
  /**
   * The part of the URL before the segments: `/ipfs/CID` on a path gateway, empty if the host
   * stands for the root. Decoded.
   */
  readonly prefix: string;
  /**
   * How the content is a website: the host stands for the root, by its name or by a DNSLink, or an
   * app of another module serves it.
   */
  readonly website: "subdomain" | "dnslink" | "app" | undefined;
  /**
   * `//HOST` of the gateway with paths, or of the website itself; empty if it is the requested
   * host.
   */
  readonly gateway: string;
  /** The host's own value of `GatewaySettings.deserialized`. */
  readonly deserialized?: boolean | undefined;
}

/** Returns the decoded content path, as in X-Ipfs-Path. */
export function contentPath({ namespace, root, below = [], segments, slash }: ContentTarget): string {
  const names = below.length === 0 ? segments : [...below, ...segments];
  const path = names.length === 0 ? `/${namespace}/${root}` : `/${namespace}/${root}/${names.join("/")}`;
  return slash ? `${path}/` : path;
}

/** Returns the decoded path of the URL, without a final slash. */
export function visiblePath({ prefix, segments }: ContentTarget): string {
  return segments.length === 0 ? prefix : `${prefix}/${segments.join("/")}`;
}

/** Escapes a path for a URL. Characters that a URL may contain stay as they are. */
export function escapedPath(path: string): string {
  return plain.test(path) ? path : path.split("/").map(escapedSegment).join("/");
}

/** Escapes one name for a URL. */
export const escapedSegment = (name: string): string =>
  plain.test(name) ? name : escapedText(name).replace(/%(24|26|2B|3A|3D|40)/g, unescaped);

/** Escapes a path. Bytes that are not UTF-8 are escaped one by one. */
const escapedText = (name: string): string =>
  name.isWellFormed()
    ? encodeURIComponent(name)
    : textBytes(name)
        .toString("latin1")
        .replace(/[^\w\-.!~*'()]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);

const plain = /^[A-Za-z0-9\-._~$&+:=@/]*$/;
const unescaped = (escaped: string) => decodeURIComponent(escaped);
