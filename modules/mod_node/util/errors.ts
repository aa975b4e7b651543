/**
 * Failures of the node. Their texts are those of go-ipfs 0.9.0, letter by letter, wherever it has
 * one for the case: clients compare them.
 *
 * The table holds the failures that somebody tells apart, in this program or in one that uses it,
 * and those that are raised in several places; `failure("CODE", details)` makes one. Every other
 * failure is a `new NodeError(text)` without a code, in the one place where it arises. A failure is
 * told apart by its code alone, never by its text: whoever has to tell another one apart gives it a
 * line here.
 */

/**
 * Who is at fault, as clients are told: an ordinary failure (status 500 of the RPC), an invalid
 * call (400), or something that the node needs and that may be back in a moment (503).
 */
export type FailureKind = "failure" | "client" | "unavailable";

/** Text by code; `{name}` is replaced by the detail of that name. */
export const failures = {
  // Blocks and nodes
  CODEC_UNKNOWN: "unrecognized format: {name}",
  CODEC_UNREADABLE: "unrecognized object type: {codec}",
  BLOCK_NOT_FOUND: "blockservice: key not found",
  BLOCKSTORE_NOT_FOUND: "blockstore: block not found",
  NODE_NOT_FOUND: "merkledag: not found",
  BLOCK_MISMATCH: "block in storage has different hash than requested",
  BLOCK_CORRUPT:
    "block {cid} is damaged on disk: its bytes do not have that hash; add the same content again, which replaces the block",
  BLOCKS_CORRUPT: "verify complete, some blocks were corrupt",
  HASH_INSECURE: "potentially insecure hash functions not allowed",
  HASH_SHORT: "hashes must be at {least} least bytes long",
  HASH_UNKNOWN: "unrecognized hash function: {name}",
  HASH_UNAVAILABLE: "unknown multihash code {code} (0x{hex}): no such hash registered",
  // Paths and names
  CID_CODEC_NOT_OF_VERSION_0: "cannot convert to CIDv0 with any codec other than DagPB",
  CID_FORMAT_INVALID: "invalid format string: {format}",
  CID_VERSION_INVALID: "invalid cid version: {version}",
  BLOCK_NOT_IMPORTED: "{reason}",
  BLOCK_OF_OTHER_HASH: "mismatch in content integrity, name: {cid}, data: {made}",
  ARCHIVE_BROKEN: "{reason}",
  DAG_NOT_EXPORTED: "{reason} (currently offline, perhaps retry {remedy})",
  DAG_NOT_TRAVERSED: "error traversing DAG: {reason}",
  INVALID_CID: "{reason}",
  INVALID_PATH: "invalid path {path}: {reason}",
  KEYS_NOT_WRITTEN: "{reason}",
  INVALID_PEER_ID: "failed to parse peer ID: {reason}",
  MULTIBASE_UNKNOWN: "Unsupported multibase encoding: {name}",
  NO_LINK: "no link named {name} under {cid}",
  NAME_NOT_FOUND: "could not resolve name",
  IS_DIRECTORY: "this dag node is a directory",
  // MFS
  NOT_AN_ENTRY: "cp: cannot flush the created file {path}: {reason}",
  FILE_NOT_FOUND: "file does not exist",
  NOT_RECURSIVE: "{path} is a directory, use -r to remove directories",
  FILES_ROOT_LOST:
    "the root of the files cannot be read, since {cid} is lost: {reason}. Add or fetch that block again, or stop the node and give the files another root: `modhost node files chroot --confirm [CID]`",
  // Denylists
  CONTENT_BLOCKED: "{path} is blocked and cannot be provided",
  CONTENT_BLOCKED_LEGALLY: "{path} is blocked and cannot be provided",
  // Storage
  REPO_LOCKED: "lock {path}: someone else has the lock",
  STORE_FULL:
    "the block store cannot write to {path}: {reason}; free space or move the repo, what was answered is safe",
  STORE_BROKEN: "the block store at {path} cannot be read: {reason}",
  SEGMENT_UNREADABLE:
    "{path} cannot be read: {reason}. No block was changed. Copy it to a sound disk with a program that skips what cannot be read (ddrescue), put the copy in its place and start again: only blocks in the skipped parts are lost, and the log says where they were",
  METADATA_LOST:
    "{metadata} is missing or empty, though there are blocks in {blocks}: what is pinned, the files and the published names are lost, and a collection of garbage would remove every block. Nothing was changed. {remedy}",
  METADATA_DAMAGED:
    "the entry {key} of the metadata is damaged: {reason}. Nothing was changed; put the metadata back from a backup: modhost restore, or pg_restore for the database of a shared store",
  DATABASE_IN_USE: "{path} is in use by another program: end it first",
  DATABASE_DAMAGED:
    "what {program} has pinned cannot be read from {path}: {reason}. Nothing was changed; let {remedy} open the repo, which mends its database, or put back a copy of that folder",
  FILESTORE_OFF: "filestore is not enabled, see https://git.io/vNItf",
  REFERENCE_BROKEN: "{reason}",
  URLSTORE_OFF: "urlstore is not enabled",
  REFERENCES_OFF: "either the filestore or the urlstore must be enabled to use nocopy, see: https://git.io/vNItf",
  REFERENCES_SHARED:
    "the filestore and the urlstore refer to files of one host: a store that several hosts share cannot have them; set Experimental.FilestoreEnabled and Experimental.UrlstoreEnabled to false",
  KEYS_SECRET_SHORT:
    "the secret for shared keys has fewer than {least} characters: make one with openssl rand -base64 32",
  KEYS_SECRET_WRONG:
    "the keys of the shared store are encrypted with another secret: give this host the secret of the others, or none to have keys of its own",
  STORE_CLOSED: "the node is closed",
  STORE_UNAVAILABLE:
    "the shared store cannot be reached: {reason}; what was answered is safe, and this call can be repeated",
  STORE_READ_ONLY: "the shared store takes no writes, and what was answered is safe: {reason}",
  OBJECTS_MISSING:
    "{place} is missing, so this place has none of the objects of this store: correct the bucket or prefix, or put the objects back. Where they are there but for this one, write {store} into it",
  OBJECTS_OF_OTHER_STORE:
    "{place} says {found}: the objects there belong to another store than the database does ({store}). Correct the prefix, or the database and schema, or give a new store a prefix of its own",
  SEGMENT_GONE:
    "segment {id} is listed, but is not in the shared store; restore the object from a backup of the bucket, or add the same content again, which stores new copies",
  OBJECT_CUT_OFF:
    "{name} has {bytes} bytes, but bytes {first} to {last} were requested: it is not the object that was written; restore it from a backup of the bucket, or add the same content again, which stores new copies",
  SESSION_LOST:
    "this host was away from the shared store too long, and joined it anew: the change that was under way did not take place, and the call can be repeated",
  LOCK_LOST: "another host has taken over {name}: nothing of this step took place",
  COLLECTING:
    "another host of the shared store is removing blocks: nothing was removed by this call, and it can be repeated",
  COLLECTION_UNANSWERED:
    "garbage collection is given up, and nothing is removed: for {seconds} s no answer came from {hosts}. Look there which call does not end, or start that host again",
  // Routing
  RECORD_EXPIRED: "expired record",
  ROUTING_TABLE_EMPTY: "failed to find any peer in table",
  // Features that are off, or that need a network
  OFFLINE: "this action must be run in online mode, try running 'ipfs daemon' first",
  PEER_NOT_ASKED: `'ipfs id' currently cannot query information on remote
peers without a running daemon; we are working to fix this.
In the meantime, if you want to query remote peers using 'ipfs id',
please run the daemon:

    ipfs daemon &
    ipfs id QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ
`,
  OFFLINE_COMMAND: "this command must be run in online mode. Try running 'ipfs daemon' first",
  PROVIDE_OFF: "invalid configuration: Provide.Enabled is set to 'false'",
  PROVIDED_CID_INVALID: "invalid CID {text}: {reason}",
  PUBSUB_OFF: "experimental pubsub feature not enabled. Run daemon with --enable-pubsub-experiment to use.",
} as const satisfies Record<string, string>;

export type FailureCode = keyof typeof failures;

/** Failures of the kind `unavailable`. */
const passing: ReadonlySet<FailureCode> = new Set([
  "STORE_UNAVAILABLE",
  "STORE_READ_ONLY",
  "SESSION_LOST",
  "COLLECTING",
]);

/** Seconds to wait before what is unavailable is asked for again. */
const RETRY_SECONDS = 5;

/** What a failure is about, by name: what its text has, and what another text for it may need. */
export type FailureDetails = Readonly<Record<string, string | number>>;

type Details<T extends string> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | Details<Rest> : never;
type DetailsOf<C extends FailureCode> = Record<Details<(typeof failures)[C]>, string | number> & FailureDetails;

const brand = Symbol.for("modhost.NodeError");

export interface FailureOptions {
  readonly code?: FailureCode | undefined;
  readonly kind?: FailureKind;
  readonly details?: FailureDetails | undefined;
  readonly cause?: unknown;
}

/**
 * A failure with a text for the client. `code` is undefined for those that are not in the table.
 */
export class NodeError extends Error {
  override readonly name = "NodeError";
  readonly [brand] = true;
  readonly code: FailureCode | undefined;
  readonly kind: FailureKind;
  /** Undefined for those that are not in the table, and for those that have none. */
  readonly details: FailureDetails | undefined;

  constructor(message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code;
    this.details = options.details;
    this.kind = options.kind ?? "failure";
  }

  /**
   * Like `instanceof`, but also true for one made by another copy of this package in the same
   * process.
   */
  static is(value: unknown): value is NodeError {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
  }
}

/**
 * The failure with that code. The compiler checks that `details` has what the text needs, and it
 * may have more; `cause` becomes its cause.
 */
export function failure<C extends FailureCode>(
  code: C,
  ...[details, cause]: [Details<(typeof failures)[C]>] extends [never]
    ? [details?: FailureDetails | undefined, cause?: unknown]
    : [details: DetailsOf<C>, cause?: unknown]
): NodeError {
  const message = failures[code].replace(/\{(\w+)\}/g, (_, name: string) => String(details?.[name]));
  return new NodeError(message, { code, kind: passing.has(code) ? "unavailable" : "failure", details, cause });
}

/**
 * Seconds after which a call may be tried again, where it failed with the kind `unavailable`, or
 * for such a failure; undefined for all else.
 */
export function retryAfter(thrown: unknown): number | undefined {
  for (let error = thrown; NodeError.is(error); error = error.cause) {
    if (error.kind === "unavailable") return RETRY_SECONDS;
  }
  return undefined;
}
