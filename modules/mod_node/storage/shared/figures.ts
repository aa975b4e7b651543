/** What a host asks of a shared store, since it was opened. */
import type { Figures } from "./s3/figures.ts";

export interface SharedFigures {
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
    /** Blocks that were read from it. */
    readonly hits: number;
    /** Blocks for which the object store was asked. */
    readonly misses: number;
  };
}
