/** Which store it is that a host shares, how it is at the moment, and what this host has asked of it since it was opened. */
import type { Figures } from "./s3/figures.ts";

export interface SharedFigures {
  /** Where it is, for people: `s3://bucket/prefix`, and hosts with their ports, without user and password. */
  readonly places: Readonly<Record<"objects" | "database", string>>;
  /** What is away, each with the reason. */
  readonly problems: Readonly<Partial<Record<"objects" | "database", string>>>;
  readonly waiting: {
    /** Bytes of blocks that are not in the store, or not in the index yet. */
    readonly bytes: number;
    /** Changes that wait for their commit. */
    readonly calls: number;
  };
  /** The last collection of garbage that this host has heard the end of. */
  readonly lastCollection: CollectionEnd | undefined;
  /** Of the object store, by kind. */
  readonly requests: Figures;
  readonly database: {
    readonly roundTrips: number;
    /** Connections that were lost or could not be made. */
    readonly faults: number;
    readonly commits: number;
    /** Calls that those commits were for. */
    readonly calls: number;
    /** Commits that were calculated again, as another host was faster. */
    readonly races: number;
    readonly sessionsLost: number;
  };
  readonly cache: {
    /** On the disk of this host. */
    readonly bytes: number;
    readonly max: number;
    /** Blocks that were read from it. */
    readonly hits: number;
    /** Blocks for which the object store was asked. */
    readonly misses: number;
  };
}

export interface CollectionEnd {
  /** Milliseconds since 1970 by the clock of this host. */
  readonly at: number;
  /** Undefined where another host led it. */
  readonly removed: number | undefined;
}
