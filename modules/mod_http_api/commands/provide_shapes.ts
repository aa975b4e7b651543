/** The shape of the metrics of announcements on the wire. */
import { fields, nullable, type ValueOf } from "../rpc/shape.ts";

const sweep = fields("Stats", {
  closed: "bool",
  connectivity: fields("Connectivity", { status: "string", since: "time" }),
  queues: fields("Queues", {
    pending_key_provides: "int",
    pending_region_provides: "int",
    pending_region_reprovides: "int",
  }),
  schedule: fields("Schedule", {
    keys: "int",
    regions: "int",
    avg_prefix_length: "float64",
    next_reprovide_at: "time",
    next_reprovide_prefix: "string",
  }),
  workers: fields("Workers", {
    max: "int",
    active: "int",
    active_periodic: "int",
    active_burst: "int",
    dedicated_periodic: "int",
    dedicated_burst: "int",
    queued_periodic: "int",
    queued_burst: "int",
    max_provide_conns_per_worker: "int",
  }),
  timing: fields("Timing", {
    uptime: "duration",
    reprovides_interval: "duration",
    cycle_start: "time",
    current_time_offset: "duration",
    max_reprovide_delay: "duration",
  }),
  operations: fields("Operations", {
    ongoing: fields("OngoingOperations", {
      region_provides: "int",
      key_provides: "int",
      region_reprovides: "int",
      key_reprovides: "int",
    }),
    past: fields("PastOperations", {
      records_provided: "int",
      keys_provided: "int",
      keys_failed: "int",
      keys_provided_per_minute: "float64",
      keys_reprovided_per_minute: "float64",
      reprovide_duration: "duration",
      avg_keys_per_reprovide: "float64",
      regions_reprovided_last_cycle: "int",
    }),
  }),
  network: fields("Network", {
    peers: "int",
    reachable: "int",
    complete_keyspace_coverage: "bool",
    avg_region_size: "float64",
    avg_holders: "float64",
    replication_factor: "int",
  }),
});

const legacy = fields("ReproviderStats", {
  TotalReprovides: "uint64",
  LastReprovideBatchSize: "uint64",
  ReprovideInterval: "duration",
  AvgReprovideDuration: "duration",
  LastReprovideDuration: "duration",
  LastRun: "time",
});

export const provideStats = fields("provideStats", {
  Sweep: nullable(sweep),
  Legacy: nullable(legacy),
  FullRT: "bool",
});
export type ShownStats = ValueOf<typeof provideStats>;
export type ShownSweep = ValueOf<typeof sweep>;
