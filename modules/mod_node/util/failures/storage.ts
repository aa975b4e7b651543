/** Failures of the repo: configuration, keys, block stores, and stores that hosts share. */
export const storageFailures = {
  // The repo
  REPO_NOT_FOUND: "no IPFS repo found in {path}.\nplease run: 'ipfs init'",
  /** The folder already contains a repo. */
  REPO_EXISTS: "{reason}",
  REPO_LOCKED: "lock {path}: someone else has the lock",
  /** The folder is not a complete repo. */
  REPO_INVALID: "{reason}",
  /** Another program or another version has to open the repo. */
  REPO_VERSION_UNSUPPORTED: "{reason}",
  /** The repo cannot be created, locked or written to. */
  REPO_NOT_WRITABLE: "{reason}",
  /** The configuration of the datastore is invalid, or differs from the files of the repo. */
  DATASTORE_INVALID: "{reason}",
  /** The node cannot open this kind of datastore. */
  DATASTORE_UNSUPPORTED: "{reason}",
  NOT_A_REGULAR_FILE: "{path} is not a regular file",
  /** A repo cannot be copied in this way; nothing was copied. */
  MIGRATION_REFUSED: "{reason}",
  /** Not all of a repo was copied. */
  MIGRATION_INCOMPLETE: "{reason}",
  // Configuration
  /** A value of the configuration is invalid. */
  CONFIG_INVALID: "{reason}",
  /** The configuration has no such key. */
  CONFIG_KEY_NOT_FOUND: "{reason}",
  /** The configuration would not work after the change. */
  CONFIG_CHANGE_REFUSED: "{reason}",
  /** The call would show or change secrets of the configuration. */
  CONFIG_SECRET: "{reason}",
  CONFIG_CHANGED: "the config was changed while it was edited: edit it again",
  CONFIG_PROFILE_UNKNOWN: "{name} is not a profile",
  /** A change of the configuration takes effect at the next start. */
  RESTART_NEEDED: "{reason}",
  /** The document of AutoConf is invalid. */
  AUTOCONF_INVALID: "{reason}",
  /** The document of AutoConf cannot be fetched. */
  AUTOCONF_NOT_FETCHED: "{reason}",
  // Identity and keys
  /** The identity in the configuration is missing or invalid. */
  IDENTITY_INVALID: "{reason}",
  /** The identity cannot be replaced. */
  IDENTITY_NOT_ROTATED: "{reason}",
  /** There is no such key. */
  KEY_NOT_FOUND: "{reason}",
  /** There is a key of this name already. */
  KEY_EXISTS: "{reason}",
  /** Bytes are not a valid private key, or not of an allowed type. */
  KEY_INVALID: "{reason}",
  /** A key cannot have this name, or the key of this name cannot be changed. */
  KEY_NAME_INVALID: "{reason}",
  /** A stored key cannot be read. */
  KEY_UNREADABLE: "{reason}",
  /** Keys cannot be listed in the requested base. */
  KEYS_NOT_WRITTEN: "{reason}",
  KEYS_SECRET_SHORT:
    "the secret for shared keys has fewer than {least} characters: create one with openssl rand -base64 32",
  KEYS_SECRET_WRONG:
    "the keys of the shared store are encrypted with another secret: give this host the secret of the others, or none to have keys of its own",
  KEYS_SECRET_UNREADABLE: "the shared store: {what} cannot be read: {reason}",
  // Block stores and metadata
  STORE_FULL:
    "the block store cannot write to {path}: {reason}; free space or move the repo. Everything that was confirmed is stored",
  STORE_BROKEN: "the block store at {path} cannot be read: {reason}",
  STORE_CLOSED: "the node is closed",
  SEGMENT_UNREADABLE:
    "{path} cannot be read: {reason}. No block was changed. Copy it to a sound disk with a program that skips what cannot be read (ddrescue), replace the file with the copy, and start again: only blocks in the skipped parts are lost, and the log says where they were",
  METADATA_LOST:
    "{metadata} is missing or empty, though there are blocks in {blocks}: the pins, the files and the published names are lost, and garbage collection would remove every block. Nothing was changed. {remedy}",
  METADATA_DAMAGED:
    "the entry {key} of the metadata is damaged: {reason}. Nothing was changed; restore the metadata from a backup: modhost restore, or pg_restore for the database of a shared store",
  METADATA_COPY_DAMAGED: "the copy of the metadata in {path} is damaged: {reason}",
  /** A key of the metadata is invalid. */
  METADATA_KEY_INVALID: "{reason}",
  /** The local copy of shared metadata cannot be written. */
  METADATA_NOT_WRITTEN: "{reason}",
  DATABASE_IN_USE: "{path} is in use by another program: stop it first",
  DATABASE_DAMAGED:
    "the pins of {program} cannot be read from {path}: {reason}. Nothing was changed; let {remedy} open the repo, which repairs its database, or restore a copy of that folder",
  /** The database of go-ipfs or Kubo contains an invalid record. */
  DATABASE_RECORD_INVALID: "{reason}",
  // References to files and URLs
  FILESTORE_OFF: "filestore is not enabled, see https://git.io/vNItf",
  URLSTORE_OFF: "urlstore is not enabled",
  REFERENCES_OFF: "either the filestore or the urlstore must be enabled to use nocopy, see: https://git.io/vNItf",
  REFERENCES_SHARED:
    "the filestore and the urlstore refer to files of one host, so a store that several hosts share cannot use them; set Experimental.FilestoreEnabled and Experimental.UrlstoreEnabled to false",
  /** A file or URL no longer has the bytes that were added from it. */
  REFERENCE_BROKEN: "{reason}",
  REFERENCE_OUTSIDE: "cannot add filestore references outside ipfs root ({root})",
  URL_INVALID: "unsupported url syntax: {url}",
  /** A URL cannot be fetched. */
  URL_NOT_FETCHED: "{reason}",
  // Stores that hosts share
  /** The address of a shared store is invalid. */
  STORE_ADDRESS_INVALID: "{reason}",
  STORE_SETTINGS_INVALID: "the shared store: {reason}",
  STORE_UNAVAILABLE:
    "the shared store cannot be reached: {reason}; everything that was confirmed is stored, and this call can be repeated",
  STORE_READ_ONLY: "the shared store takes no writes, and everything that was confirmed is stored: {reason}",
  /** The database of a shared store has an unknown version. */
  SCHEMA_UNSUPPORTED: "{reason}",
  SCHEMA_IN_USE:
    "schema {schema} of the database has version {version}, and this program upgrades it to version {own} when no host uses it: stop {hosts}",
  OBJECTS_MISSING:
    "{path} is missing, so this address has none of the objects of this store: correct the bucket or prefix, or restore the objects. If only this object is missing, write {store} into it",
  OBJECTS_OF_OTHER_STORE:
    "{path} says {found}: the objects there belong to another store than the database does ({store}). Correct the prefix, or the database and schema, or give a new store a prefix of its own",
  /** The object store lacks a required property. */
  OBJECT_STORE_UNFIT: "{reason}",
  /** The object store responded with an error, or not as requested. */
  OBJECT_STORE_FAULT: "{reason}",
  /** The object store refuses reads until somebody grants a permission. */
  OBJECT_STORE_UNAVAILABLE: "{reason}",
  /** There are no valid credentials for the object store. */
  OBJECT_STORE_CREDENTIALS: "{reason}",
  OBJECT_CUT_OFF:
    "{name} has {bytes} bytes, but bytes {first} to {last} were requested: it is not the object that was written; restore it from a backup of the bucket, or add the same content again, which stores new copies",
  SEGMENT_GONE:
    "segment {id} is listed, but is not in the shared store; restore the object from a backup of the bucket, or add the same content again, which stores new copies",
  SESSION_LOST:
    "this host was away from the shared store too long, and joined it again: the change in progress was not made, and the call can be repeated",
  LOCK_LOST: "another host has taken over {name}: this step changed nothing",
  COLLECTING:
    "another host of the shared store is removing blocks: nothing was removed by this call, and it can be repeated",
  COLLECTION_UNANSWERED:
    "garbage collection was stopped, and nothing was removed: {hosts} did not respond for {seconds} s. Find the call that does not end there, or start that host again",
  // Mounts
  /** A folder cannot be mounted. */
  MOUNT_FAILED: "{reason}",
} as const satisfies Record<string, string>;
