/** The configuration keys for announcing content by region of the key space. */
import { key } from "./config_key.ts";
import { count, duration, flag, optionalDuration, optionalText } from "./value_kinds.ts";

/**
 * Keys among these that replace a key of version 0.9 are read by `later_keys.ts`; the declarations
 * here allow setting them.
 */
export const provideKeys = {
  "Provide.Enabled": key("live", flag, undefined, "`false`: announce nothing except on request."),
  "Provide.Strategy": key("live", optionalText, undefined, "What is announced; see `Reprovider.Strategy`."),
  "Provide.DHT.Interval": key("live", optionalDuration, undefined, "How often content is announced; `0` is never."),
  "Provide.DHT.SweepEnabled": key(
    "start",
    flag,
    undefined,
    "Announce by region of the key space, spread over the interval; `false` announces block by block, in one run per interval.",
  ),
  "Provide.DHT.ResumeEnabled": key(
    "start",
    flag,
    undefined,
    "Continue a cycle after a restart; `false` starts a new cycle.",
  ),
  "Provide.DHT.MaxWorkers": key(
    "live",
    count,
    undefined,
    "Number of regions that are announced at a time; null is 16.",
  ),
  "Provide.DHT.DedicatedPeriodicWorkers": key(
    "live",
    count,
    undefined,
    "Workers that are reserved for periodic announcements of regions; null is 2.",
  ),
  "Provide.DHT.DedicatedBurstWorkers": key(
    "live",
    count,
    undefined,
    "Workers that are reserved for new keys; null is 1.",
  ),
  "Provide.DHT.MaxProvideConnsPerWorker": key(
    "live",
    count,
    undefined,
    "Number of peers that a worker sends to at a time; null is 20.",
  ),
  "Provide.DHT.KeystoreBatchSize": key("live", count, undefined, "Number of keys in memory at a time; null is 16384."),
  "Provide.DHT.OfflineDelay": key(
    "live",
    duration,
    undefined,
    "How long the node may have no peers before `provide/stat` says `offline`; empty is 2h.",
  ),
  "Provide.DHT.SendProviderRecordTimeout": key(
    "live",
    duration,
    undefined,
    "How long a peer may take to accept records before it counts as unreachable; empty is 10s.",
  ),
} as const;
