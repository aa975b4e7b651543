/** What holds of a shared store where nothing is said, in the option `node_store` as well. */
export const STORE_DEFAULTS = {
  /** Bytes of the disk cache of a host. */
  cacheBytes: 10 * 2 ** 30,
  /** Length of a full segment in bytes. */
  segmentBytes: 64 * 2 ** 20,
  /** Milliseconds for which objects stay that nothing refers to any more. */
  graceMs: 3_600_000,
} as const;
