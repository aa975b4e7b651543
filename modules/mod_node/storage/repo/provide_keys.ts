/** The keys of the configuration that say how announcements are made by region of the key space. */
import { key } from "./config_key.ts";
import { count, duration, flag, optionalDuration, optionalText } from "./value_kinds.ts";

/** Those that stand for a key of version 0.9 are read as such, from `later_keys.ts`: here they can be set. */
export const provideKeys = {
  "Provide.Enabled": key("live", flag, undefined, "`false`: announce nothing unless told to."),
  "Provide.Strategy": key("live", optionalText, undefined, "What is announced; see `Reprovider.Strategy`."),
  "Provide.DHT.Interval": key("live", optionalDuration, undefined, "How often it is announced; `0` is never."),
  "Provide.DHT.SweepEnabled": key(
    "start",
    flag,
    undefined,
    "Announce by region of the key space, spread over the interval; `false` is block by block, one run each interval.",
  ),
  "Provide.DHT.ResumeEnabled": key(
    "start",
    flag,
    undefined,
    "Go on after a restart where it was; `false` begins a cycle anew.",
  ),
  "Provide.DHT.MaxWorkers": key("live", count, undefined, "Regions that are announced at a time; null is 16."),
  "Provide.DHT.DedicatedPeriodicWorkers": key(
    "live",
    count,
    undefined,
    "Workers that are kept for regions whose turn it is; null is 2.",
  ),
  "Provide.DHT.DedicatedBurstWorkers": key("live", count, undefined, "Workers that are kept for new keys; null is 1."),
  "Provide.DHT.MaxProvideConnsPerWorker": key(
    "live",
    count,
    undefined,
    "Peers that a worker sends to at a time; null is 20.",
  ),
  "Provide.DHT.KeystoreBatchSize": key(
    "live",
    count,
    undefined,
    "Keys that are held in memory at a time; null is 16384.",
  ),
  "Provide.DHT.OfflineDelay": key(
    "live",
    duration,
    undefined,
    "How long there may be no peers before `provide/stat` says `offline`; nothing is 2h.",
  ),
  "Provide.DHT.SendProviderRecordTimeout": key(
    "live",
    duration,
    undefined,
    "How long a peer may take no records before it counts as unreachable; nothing is 10s.",
  ),
} as const;
