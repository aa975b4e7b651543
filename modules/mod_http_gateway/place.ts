/** What a request asks for, whichever host and path it came by. All that answers goes by this, and by nothing else of the URL. */

export type Namespace = "ipfs" | "ipns";

export interface Place {
  readonly namespace: Namespace;
  /** A CID, or a name: as it was written. */
  readonly root: string;
  /** Names between the root and what the URL shows. */
  readonly below?: readonly string[];
  /** Decoded names that the URL shows; none is empty, `.` or `..`. */
  readonly segments: readonly string[];
  /** The URL ends in a slash. */
  readonly slash: boolean;
  /** What a URL has before the segments: `/ipfs/CID` on a path gateway, nothing where the host stands for the root. Decoded. */
  readonly prefix: string;
  /** A website: the host stands for the root, by its name or by a DNSLink, or an app of another module does. */
  readonly website: "subdomain" | "dnslink" | "app" | undefined;
  /** `//HOST`, the gateway that has paths, or the website's own; empty where it is the one that was asked. */
  readonly gateway: string;
  /** What the host has for `GatewaySettings.deserialized`. */
  readonly deserialized?: boolean | undefined;
}

/** The content path, decoded, as X-Ipfs-Path tells it. */
export function contentPath({ namespace, root, below = [], segments, slash }: Place): string {
  const names = below.length === 0 ? segments : [...below, ...segments];
  const path = names.length === 0 ? `/${namespace}/${root}` : `/${namespace}/${root}/${names.join("/")}`;
  return slash ? `${path}/` : path;
}

/** The path of the URL, decoded, without a slash at its end. */
export function visiblePath({ prefix, segments }: Place): string {
  return segments.length === 0 ? prefix : `${prefix}/${segments.join("/")}`;
}

/** A path as it stands in a URL: what a URL may have as it is stays, all else is escaped. */
export function escapedPath(path: string): string {
  return plain.test(path) ? path : path.split("/").map(escapedSegment).join("/");
}

/** A name within a URL. */
export const escapedSegment = (name: string): string =>
  plain.test(name) ? name : encodeURIComponent(name.toWellFormed()).replace(/%(24|26|2B|3A|3D|40)/g, unescaped);

const plain = /^[A-Za-z0-9\-._~$&+:=@/]*$/;
const unescaped = (escaped: string) => decodeURIComponent(escaped);
