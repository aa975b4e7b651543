/** Failures of content: blocks, nodes, UnixFS, the files of MFS, pins and denylists. */
export const contentFailures = {
  // Blocks and nodes
  BLOCK_NOT_FOUND: "blockservice: key not found",
  BLOCKSTORE_NOT_FOUND: "blockstore: block not found",
  NODE_NOT_FOUND: "merkledag: not found",
  BLOCK_NOT_READ: "failed to get block for {cid}: {reason}",
  /** The call needs a block that is not stored locally. */
  BLOCK_NOT_LOCAL: "{reason}",
  BLOCK_MISMATCH: "block in storage has different hash than requested",
  BLOCK_CORRUPT:
    "block {cid} is damaged on disk: its bytes do not have that hash; add the same content again, which replaces the block",
  BLOCKS_CORRUPT: "verify complete, some blocks were corrupt",
  /** A block is larger than blocks may be. */
  BLOCK_TOO_LARGE: "{reason}",
  BLOCK_NOT_STORABLE: "{cid} cannot be stored: {reason}",
  /** A block of a CAR cannot be stored. */
  BLOCK_NOT_IMPORTED: "{reason}",
  BLOCK_OF_OTHER_HASH: "mismatch in content integrity, name: {cid}, data: {made}",
  DAG_NOT_EXPORTED: "{reason} (currently offline, perhaps retry {remedy})",
  DAG_NOT_TRAVERSED: "error traversing DAG: {reason}",
  /** A node cannot have its links changed without damage. */
  NODE_NOT_EDITABLE: "{reason}",
  // Paths and names
  INVALID_PATH: "invalid path {path}: {reason}",
  NO_LINK: "no link named {name} under {cid}",
  /** A node has no such link, in calls that do not resolve paths. */
  LINK_NOT_FOUND: "{reason}",
  NAME_NOT_FOUND: "could not resolve name",
  IS_DIRECTORY: "this dag node is a directory",
  // UnixFS
  NOT_DAG_PB: "expected protobuf dag node",
  /** A block is valid, but is not a UnixFS node. */
  NOT_UNIXFS: "{reason}",
  /** A block is not a valid UnixFS node. */
  UNIXFS_INVALID: "{reason}",
  UNIXFS_PART_INVALID: "{cid} is not a part of a file",
  /** The call does not support this kind of UnixFS node. */
  UNIXFS_TYPE_UNSUPPORTED: "{reason}",
  SHARD_TOO_DEEP: "sharded directory too deep",
  /** The option for the chunker is invalid. */
  CHUNKER_INVALID: "{reason}",
  // MFS
  FILE_NOT_FOUND: "file does not exist",
  FILE_EXISTS: "file already exists",
  NOT_A_DIRECTORY: "{path} is not a directory",
  PARENT_NOT_A_DIRECTORY: "{path} was not a directory",
  PATH_THROUGH_FILE: "cannot access {path}: Not a directory",
  /** The path leads to something other than a file. */
  NOT_A_FILE: "{reason}",
  NOT_AN_ENTRY: "cp: cannot flush the created file {path}: {reason}",
  NOT_RECURSIVE: "{path} is a directory, use -r to remove directories",
  /** A path of MFS is invalid. */
  FILES_PATH_INVALID: "{reason}",
  /** MFS does not allow the change, such as removing its root. */
  FILES_CHANGE_REFUSED: "{reason}",
  FILES_ROOT_LOST:
    "the root of the files cannot be read, since {cid} is lost: {reason}. Add or fetch that block again, or stop the node and give the files another root: `modhost node files chroot --confirm [CID]`",
  FILES_UNFLUSHED:
    "reached limit of {limit} unflushed MFS operations. To resolve: 1) run 'ipfs files flush' to persist changes, 2) use --flush=true (default), or 3) increase Internal.MFSNoFlushLimit in config",
  FILE_REPLACED: "{path} was replaced while it was being written",
  // Pins and garbage collection
  /** The object is not pinned, or not in this mode. */
  NOT_PINNED: "{reason}",
  /** The object cannot be removed or unpinned in this mode, because it is pinned. */
  PINNED: "{reason}",
  /** The object is pinned already. */
  PINNED_ALREADY: "{reason}",
  /** Some objects could not be pinned. */
  PIN_FAILED: "{reason}",
  CID_NOT_PINNABLE:
    "a CID of {length} characters cannot be pinned, at most {most}: add with a smaller inline-limit, or with pin=false",
  /** Garbage collection failed. */
  COLLECTION_FAILED: "{reason}",
  // Denylists
  CONTENT_BLOCKED: "{path} is blocked and cannot be provided",
  CONTENT_BLOCKED_LEGALLY: "{path} is blocked and cannot be provided",
  /** A line or the header of a denylist is invalid. */
  DENYLIST_INVALID: "{reason}",
} as const satisfies Record<string, string>;
