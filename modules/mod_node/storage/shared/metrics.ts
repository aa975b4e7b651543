/**
 * Metrics of a shared store: its addresses, its current problems, and the requests of this host
 * since it opened the store.
 */
import type { MetricsByKind } from "./s3/metrics.ts";

export interface SharedStoreMetrics {
  /**
   * Addresses of the stores for people: `s3://bucket/prefix`, and database hosts with their ports,
   * without user and password.
   */
  readonly addresses: Readonly<Record<"objects" | "database", string>>;
  /** The stores that are unreachable or read-only, each with the reason. */
  readonly problems: Readonly<Partial<Record<"objects" | "database", string>>>;
  readonly waiting: {
    /** Bytes of blocks that are not in the store or not in the index yet. */
    readonly bytes: number;
    /** Changes that wait for their commit. */
    readonly calls: number;
  };
  /** The last garbage collection whose end this host has seen. */
  readonly lastCollection: CollectionEnd | undefined;
  /** Requests to the object store, by kind. */
  readonly requests: MetricsByKind;
  readonly database: {
    readonly roundTrips: number;
    /** Connections that were lost or could not be opened. */
    readonly faults: number;
    readonly commits: number;
    /** Calls whose changes these commits contain. */
    readonly calls: number;
    /** Commits that were calculated again because another host committed first. */
    readonly races: number;
    readonly sessionsLost: number;
  };
  readonly cache: {
    /** Bytes on the disk of this host. */
    readonly bytes: number;
    readonly max: number;
    /** Blocks that were read from the cache. */
    readonly hits: number;
    /** Blocks that were requested from the object store. */
    readonly misses: number;
  };
}

export interface CollectionEnd {
  /** Milliseconds since 1970 by the clock of this host. */
  readonly at: number;
  /** Number of removed blocks; undefined when another host led the collection. */
  readonly removed: number | undefined;
}
