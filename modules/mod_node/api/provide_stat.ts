/** Statistics of announcements in the form of the client library, which is that of the RPC API. */
import type { DhtPeer } from "../network/kad/announcer.ts";
import type { LastReprovide } from "../network/kad/reprovider.ts";
import { REPLICATION } from "../network/kad/sweep/dht_regions.ts";
import { MAX_DELAY_MS } from "../network/kad/sweep/region_schedule.ts";
import { cycleAt } from "../network/kad/sweep/regions.ts";
import type { Sweeper } from "../network/kad/sweep/sweeper.ts";

/** Times are RFC 3339, and `0001-01-01T00:00:00Z` means unknown; durations are nanoseconds. */
export interface SweepProvideStats {
  readonly closed: boolean;
  readonly connectivity: { readonly status: "online" | "disconnected" | "offline"; readonly since: string };
  /**
   * New CIDs that are queued, the regions that contain them, and regions that failed and are
   * retried.
   */
  readonly queues: {
    readonly pending_key_provides: number;
    readonly pending_region_provides: number;
    readonly pending_region_reprovides: number;
  };
  /**
   * CIDs that are announced repeatedly, and the regions that contain any; -1 if an average is not
   * known.
   */
  readonly schedule: {
    readonly keys: number;
    readonly regions: number;
    readonly avg_prefix_length: number;
    readonly next_reprovide_at: string;
    readonly next_reprovide_prefix: string;
  };
  readonly workers: {
    readonly max: number;
    readonly active: number;
    readonly active_periodic: number;
    readonly active_burst: number;
    readonly dedicated_periodic: number;
    readonly dedicated_burst: number;
    readonly queued_periodic: number;
    readonly queued_burst: number;
    readonly max_provide_conns_per_worker: number;
  };
  readonly timing: {
    readonly uptime: number;
    readonly reprovides_interval: number;
    readonly cycle_start: string;
    readonly current_time_offset: number;
    readonly max_reprovide_delay: number;
  };
  readonly operations: {
    readonly ongoing: {
      readonly region_provides: number;
      readonly key_provides: number;
      readonly region_reprovides: number;
      readonly key_reprovides: number;
    };
    /** Totals since the start; rates are per worker. */
    readonly past: {
      readonly records_provided: number;
      readonly keys_provided: number;
      readonly keys_failed: number;
      readonly keys_provided_per_minute: number;
      readonly keys_reprovided_per_minute: number;
      readonly reprovide_duration: number;
      readonly avg_keys_per_reprovide: number;
      readonly regions_reprovided_last_cycle: number;
    };
  };
  /** The network as it looked when regions were last explored. */
  readonly network: {
    readonly peers: number;
    readonly reachable: number;
    readonly complete_keyspace_coverage: boolean;
    readonly avg_region_size: number;
    readonly avg_holders: number;
    readonly replication_factor: number;
  };
}

/** Statistics of announcements block by block. Durations are nanoseconds. */
export interface LegacyProvideStats {
  readonly TotalReprovides: number;
  readonly LastReprovideBatchSize: number;
  readonly ReprovideInterval: number;
  readonly AvgReprovideDuration: number;
  readonly LastReprovideDuration: number;
  readonly LastRun: string;
}

const NEVER = "0001-01-01T00:00:00Z";

const timeText = (milliseconds: number | undefined): string =>
  milliseconds === undefined || milliseconds === 0 ? NEVER : new Date(milliseconds).toISOString();

const nanoseconds = (milliseconds: number): number => Math.round(milliseconds * 1e6);

/** @param waiting multihashes that are queued to be announced for the first time */
export function sweepStats(sweeper: Sweeper<DhtPeer>, waiting: readonly Uint8Array[]): SweepProvideStats {
  const { metrics, schedule, workers, connectivity, settings, clock } = sweeper;
  const { max, dedicated } = settings.workers;
  const { active } = workers;
  return {
    closed: sweeper.isClosed,
    connectivity: { status: connectivity.status, since: timeText(connectivity.since) },
    queues: {
      pending_key_provides: waiting.length,
      pending_region_provides: sweeper.regionsOf(waiting),
      pending_region_reprovides: schedule.retries,
    },
    schedule: scheduleStats(sweeper),
    workers: {
      max,
      active: active.periodic + active.burst,
      active_periodic: active.periodic,
      active_burst: active.burst,
      dedicated_periodic: dedicated.periodic,
      dedicated_burst: dedicated.burst,
      queued_periodic: workers.queued("periodic"),
      queued_burst: workers.queued("burst"),
      max_provide_conns_per_worker: settings.connections,
    },
    timing: timing(sweeper),
    operations: {
      ongoing: {
        region_provides: metrics.ongoing.burst.regions,
        key_provides: metrics.ongoing.burst.keys,
        region_reprovides: metrics.ongoing.periodic.regions,
        key_reprovides: metrics.ongoing.periodic.keys,
      },
      past: {
        records_provided: metrics.records,
        keys_provided: metrics.keys,
        keys_failed: metrics.failed,
        keys_provided_per_minute: metrics.perMinute("burst") ?? 0,
        keys_reprovided_per_minute: metrics.perMinute("periodic") ?? 0,
        reprovide_duration: nanoseconds(metrics.periodic?.milliseconds ?? 0),
        avg_keys_per_reprovide: metrics.periodic?.keys ?? 0,
        regions_reprovided_last_cycle: sweeper.last.regions,
      },
    },
    network: {
      peers: metrics.peers.requested,
      reachable: metrics.peers.reached,
      complete_keyspace_coverage: schedule.isCovered(clock.now()),
      avg_region_size: metrics.regionSize ?? 0,
      avg_holders: metrics.keys === 0 ? 0 : metrics.records / metrics.keys,
      replication_factor: REPLICATION,
    },
  };
}

function scheduleStats({ schedule, keystore }: Sweeper<DhtPeer>): SweepProvideStats["schedule"] {
  const { wanted } = schedule;
  const bits = wanted.reduce((sum, { length }) => sum + length, 0);
  const next = schedule.next();
  return {
    keys: keystore.size,
    regions: wanted.length,
    avg_prefix_length: wanted.length === 0 ? -1 : bits / wanted.length,
    next_reprovide_at: timeText(next?.at),
    next_reprovide_prefix: next?.prefix ?? "",
  };
}

function timing({ schedule, settings, clock, began }: Sweeper<DhtPeer>): SweepProvideStats["timing"] {
  const now = clock.now();
  const start = schedule.cycle.interval > 0 ? cycleAt(schedule.cycle, now) : undefined;
  return {
    uptime: nanoseconds(now - began),
    reprovides_interval: nanoseconds(Math.max(0, settings.interval)),
    cycle_start: timeText(start),
    current_time_offset: start === undefined ? 0 : nanoseconds(now - start),
    max_reprovide_delay: nanoseconds(MAX_DELAY_MS),
  };
}

export function legacyStats(
  { total, averageMs, lastReprovide }: { total: number; averageMs: number; lastReprovide: LastReprovide },
  interval: number,
): LegacyProvideStats {
  return {
    TotalReprovides: total,
    LastReprovideBatchSize: lastReprovide.provided,
    ReprovideInterval: nanoseconds(Math.max(0, interval)),
    AvgReprovideDuration: nanoseconds(averageMs),
    LastReprovideDuration: nanoseconds(lastReprovide.durationMs),
    LastRun: timeText(lastReprovide.at),
  };
}
