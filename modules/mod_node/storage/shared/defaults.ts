/** Defaults of a shared store, which are also the defaults of the option `node_store`. */
export const STORE_DEFAULTS = {
  /** Bytes of the disk cache of a host. */
  cacheBytes: 10 * 2 ** 30,
  /** Length of a full segment in bytes. */
  segmentBytes: 64 * 2 ** 20,
  /** Milliseconds for which unreferenced objects stay. */
  graceMs: 3_600_000,
} as const;
