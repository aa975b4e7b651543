/**
 * Every failure that the node itself raises: one table of texts. Clients compare these texts, so they are the
 * reference's own, letter by letter.
 */

/** Whose fault it is, as RPC clients are told: an ordinary failure (500), or a call that cannot be right (400). */
export type FailureKind = "failure" | "client";

/** `{name}` stands for the detail of that name. */
export const failures = {
  // Blocks and nodes
  BLOCK_NOT_FOUND: "blockservice: key not found",
  BLOCKSTORE_NOT_FOUND: "blockstore: block not found",
  NODE_NOT_FOUND: "merkledag: not found",
  BLOCK_MISMATCH: "block in storage has different hash than requested",
  BLOCK_CORRUPT:
    "block {cid} is damaged on disk: its bytes do not have that hash; remove it with block/rm force=true and fetch or add it again",
  HASH_INSECURE: "potentially insecure hash functions not allowed",
  HASH_SHORT: "hashes must be at 20 least bytes long",
  HASH_UNAVAILABLE: "unknown multihash code {code} (0x{hex}): no such hash registered",
  // Paths and names
  INVALID_CID: "{reason}",
  INVALID_PATH: "invalid path {path}: {reason}",
  NO_LINK: "no link named {name} under {cid}",
  NAME_NOT_FOUND: "could not resolve name",
  IS_DIRECTORY: "this dag node is a directory",
  // The namespace
  FILE_NOT_FOUND: "file does not exist",
  // Storage
  REPO_LOCKED: "lock {path}: someone else has the lock",
  STORE_FULL:
    "the block store cannot write to {path}: {reason}; free space or move the repo, what was answered is safe",
  STORE_BROKEN: "the block store at {path} cannot be read: {reason}",
  LEVELDB_IN_USE: "{path} is in use by another program: end it first",
  LEVELDB_DAMAGED:
    "what go-ipfs has pinned cannot be read from {path}: {reason}. Nothing was changed; let go-ipfs 0.9 open the repo, which mends its database, or put back a copy of that folder",
  FILESTORE_OFF: "filestore is not enabled, see https://git.io/vNItf",
  REFERENCE_BROKEN: "{reason}",
  URLSTORE_OFF: "urlstore is not enabled",
  REFERENCES_OFF: "either the filestore or the urlstore must be enabled to use nocopy, see: https://git.io/vNItf",
  STORE_CLOSED: "the node is closed",
  // Features that need what this node does not have at the moment
  OFFLINE: "this action must be run in online mode, try running 'ipfs daemon' first",
  OFFLINE_COMMAND: "this command must be run in online mode. Try running 'ipfs daemon' first",
  PUBSUB_OFF: "experimental pubsub feature not enabled. Run daemon with --enable-pubsub-experiment to use.",
} as const satisfies Record<string, string>;

export type FailureCode = keyof typeof failures;

type Details<T extends string> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | Details<Rest> : never;
type DetailsOf<C extends FailureCode> = Record<Details<(typeof failures)[C]>, string | number>;

const brand = Symbol.for("modhost.NodeError");

/** A failure with a text for the client. `code` is missing where the text belongs to one place only. */
export class NodeError extends Error {
  override readonly name = "NodeError";
  readonly [brand] = true;
  readonly code: FailureCode | undefined;
  readonly kind: FailureKind;

  constructor(message: string, options: { code?: FailureCode; kind?: FailureKind; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code;
    this.kind = options.kind ?? "failure";
  }

  /** True for one that any copy of the node in the process has made: modules of a host may have another than it has. */
  static is(value: unknown): value is NodeError {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
  }
}

/**
 * The failure of the table; its details are checked against the text by the compiler. What it was made of goes along as
 * its cause.
 */
export function failure<C extends FailureCode>(
  code: C,
  ...[details, cause]: [Details<(typeof failures)[C]>] extends [never]
    ? [details?: undefined, cause?: unknown]
    : [details: DetailsOf<C>, cause?: unknown]
): NodeError {
  const message = failures[code].replace(/\{(\w+)\}/g, (_, name: string) =>
    String((details as Record<string, string | number> | undefined)?.[name]),
  );
  return new NodeError(message, { code, cause });
}
