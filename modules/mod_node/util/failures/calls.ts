/** Failures of calls: arguments, options, what is uploaded, and features that are off. */
export const callFailures = {
  // Arguments, options and bodies
  /** An argument of the call is invalid. */
  ARGUMENT_INVALID: "{reason}",
  /** The value of an option is invalid. */
  OPTION_INVALID: "{reason}",
  /** Options exclude each other, or one needs another. */
  OPTION_CONFLICT: "{reason}",
  /** The body or the entries to add are invalid. */
  INPUT_INVALID: "{reason}",
  /** The input, or the work that it causes, exceeds a limit. */
  INPUT_TOO_LARGE: "{reason}",
  FILE_ARGUMENT_MISSING: "expected a file argument",
  /** The call failed for some of its items. */
  ITEM_FAILED: "{reason}",
  /** The node does not support this. */
  NOT_SUPPORTED: "{reason}",
  /** The command or the encoding was removed. */
  COMMAND_REMOVED: "{reason}",
  // Calls that end early, or have to wait
  DEADLINE_EXCEEDED: "context deadline exceeded",
  CANCELED: "context canceled",
  /** Another call or search is in progress. */
  BUSY: "{reason}",
  NODE_OPENING: "opening takes a long time, and continues",
  DAEMON_NOT_RUNNING: "daemon not running",
  /** The editor cannot be started, or ended with an error. */
  EDITOR_FAILED: "{reason}",
  // Features that are off, or that need a network
  OFFLINE: "this action must be run in online mode, try running 'ipfs daemon' first",
  OFFLINE_COMMAND: "this command must be run in online mode. Try running 'ipfs daemon' first",
  /** The node is offline, and the call does not allow that. */
  OFFLINE_NOT_ALLOWED: "{reason}",
  PEER_NOT_QUERIED: `'ipfs id' currently cannot query information on remote
peers without a running daemon; we are working to fix this.
In the meantime, if you want to query remote peers using 'ipfs id',
please run the daemon:

    ipfs daemon &
    ipfs id QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ
`,
  /** The configuration switches the feature off. */
  FEATURE_OFF: "{reason}",
  PROVIDE_OFF: "invalid configuration: Provide.Enabled is set to 'false'",
  PUBSUB_OFF: "experimental pubsub feature not enabled. Run daemon with --enable-pubsub-experiment to use.",
  IPNS_PUBSUB_OFF: "IPNS pubsub subsystem is not enabled",
  P2P_OFF: "libp2p stream mounting not enabled",
  // The log of the node
  LOG_LEVEL_INVALID: "unrecognized level: {level}",
  /** No subsystem of the log has this name. */
  LOGGER_UNKNOWN: "{reason}",
} as const satisfies Record<string, string>;
