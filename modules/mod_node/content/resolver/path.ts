/** Content paths as text. */
import type { CID } from "multiformats/cid";
import { parseCid } from "../../formats/cid/text.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { quote } from "../../util/go/text.ts";

export type Namespace = "ipfs" | "ipld" | "ipns";

export interface ContentPath {
  readonly namespace: Namespace;
  /** First component: a CID, or a name below /ipns. */
  readonly root: string;
  readonly segments: readonly string[];
  /** The path in its full form. */
  readonly text: string;
}

const namespaces: ReadonlySet<string> = new Set<Namespace>(["ipfs", "ipld", "ipns"]);
/** Neutral names for the namespaces, which paths of other programs may use. */
const neutral: ReadonlyMap<string, Namespace> = new Map([
  ["store", "ipfs"],
  ["name", "ipns"],
]);

/** The kind of fault: too few components, no namespace, or a root that is not a CID. */
type Fault = "components" | "namespace" | "root";

/** @param later for an invalid root: the reason in the words of later versions of the reference */
const invalid = (text: string, reason: string, fault: Fault, later = "") =>
  failure("INVALID_PATH", { path: quote(text), reason, fault, later });

/** Removes empty components and `.`, and resolves `..`, as Go cleans paths. */
export function clean(parts: readonly string[]): string[] {
  const cleaned: string[] = [];
  for (const part of parts) {
    if (part === "..") cleaned.pop();
    else if (part !== "" && part !== ".") cleaned.push(part);
  }
  return cleaned;
}

/**
 * Maximum number of characters of a path. Neither records of names and domains nor requests hold
 * longer ones.
 */
const MAX_PATH_LENGTH = 64 * 1024;
/** Number of characters of a longer path that error texts show. */
const SHOWN_LENGTH = 100;

/** Converts `ipfs://CID/a`, `ipns:NAME` and the like to paths. Returns any other text unchanged. */
export function pathOfUri(text: string): string {
  const [whole, scheme] = /^(ip[fn]s|ipld):\/{0,2}/i.exec(text) ?? [];
  return whole === undefined ? text : `/${scheme?.toLowerCase()}/${text.slice(whole.length)}`;
}

/**
 * Returns the content path that Kubo reads from a text. A URI is a path, and `//`, `.` and `..` are
 * resolved before the root is determined. A text without a namespace begins with a CID, optionally
 * after `/` or `./`. Any other text is returned unchanged.
 */
export function kuboPath(text: string): string {
  const path = pathOfUri(text);
  const isClean = !path.startsWith(".") && !/\/\.{0,2}\//.test(path) && namespaces.has(path.split("/")[1] ?? "ipfs");
  if (isClean || path.length > MAX_PATH_LENGTH) return path;
  const parts = clean(path.split("/"));
  const root = parts[0] ?? "";
  const isNamed = path.startsWith("/") && namespaces.has(root);
  if (!isNamed && !isCidText(root)) return path;
  return `${isNamed ? "/" : ""}${parts.join("/")}${path.endsWith("/") ? "/" : ""}`;
}

function isCidText(text: string): boolean {
  try {
    parseCid(text);
    return true;
  } catch {
    return false;
  }
}

/** @throws NodeError with the reference's text */
export function parsePath(text: string): ContentPath {
  if (text.length > MAX_PATH_LENGTH) {
    const reason = `its ${text.length} characters are more than the ${MAX_PATH_LENGTH} that a path may have`;
    throw failure("INVALID_PATH", { path: quote(`${text.slice(0, SHOWN_LENGTH)}…`), reason });
  }
  const parts = text.split("/");
  if (parts[0] !== "") return bare(text, parts);
  if (parts.length < 3) throw invalid(text, "path does not begin with '/'", "components");
  const word = parts[1] as string;
  const namespace = neutral.get(word) ?? (word as Namespace);
  if (!namespaces.has(namespace)) throw invalid(text, `unknown namespace ${quote(word)}`, "namespace");
  const root = parts[2] as string;
  if (root === "") throw invalid(text, "not enough path components", "components");
  if (namespace !== "ipns") rootCid(text, root, "invalid CID: ");
  return contentPath(text, namespace, parts.slice(2));
}

/**
 * Returns the path with its namespace, otherwise unchanged, with trailing slashes.
 *
 * @throws NodeError as `parsePath`
 */
export function fullPath(text: string): string {
  const { namespace } = parsePath(text);
  return text.startsWith("/") ? text.replace(/^\/[^/]*/, `/${namespace}`) : `/ipfs/${text}`;
}

/** Parses `CID` or `CID/a/b`. */
function bare(text: string, parts: readonly string[]): ContentPath {
  const root = parts[0] as string;
  if (text === "") throw invalid(text, "path does not begin with '/'", "components");
  rootCid(text, root, "", "components");
  return contentPath(`/ipfs/${text}`, "ipfs", parts);
}

/**
 * Cleaning may remove the root that was checked, because of `..`. So the new root is checked again.
 */
function contentPath(text: string, namespace: Namespace, parts: readonly string[]): ContentPath {
  const [space = "", root, ...segments] = clean([namespace, ...parts]);
  if (space !== namespace) throw new NodeError("INVALID_PATH", `unsupported path namespace: ${space}`);
  if (root === undefined)
    throw invalid(text, namespace === "ipns" ? "ipns path missing IPNS ID" : "empty", "components");
  if (namespace !== "ipns" && root !== parts[0]) rootCid(text, root, "invalid CID: ");
  return { namespace, root, segments, text: ["", namespace, root, ...segments].join("/") };
}

function rootCid(text: string, root: string, prefix: string, fault: Fault = "root"): CID {
  try {
    return parseCid(root);
  } catch (error) {
    const lowercased = root.length === 46 && root.startsWith("qm");
    const hint = lowercased
      ? " (possible lowercased CIDv0; consider converting to a case-agnostic CIDv1, such as base32)"
      : "";
    const { message, details } = error as NodeError;
    throw invalid(text, `${prefix}${message}${hint}`, fault, String(details?.later));
  }
}
