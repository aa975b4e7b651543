/** Counters of a node since it was opened. */
export class NodeCounts {
  readonly added = { files: 0, bytes: 0 };
  /** Garbage collections; `time` is in milliseconds. */
  readonly collections = { runs: 0, failed: 0, removed: 0, time: 0 };
}
