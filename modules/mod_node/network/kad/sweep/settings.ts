/** Reads the settings of the sweep from the configuration. */
import type { Repo } from "../../../storage/repo/repo.ts";
import { failure } from "../../../util/errors.ts";
import { parseDuration } from "../../../util/go/duration.ts";
import { SEND_TIMEOUT_MS } from "../announcer.ts";
import { announcingSettings } from "../strategies.ts";
import type { WorkerLimits } from "./workers.ts";

export interface SweepSettings {
  /** Milliseconds in which everything is announced once; zero or negative for never. */
  readonly interval: number;
  /** Whether the sweep resumes after a restart; otherwise it begins again. */
  readonly resumes: boolean;
  readonly workers: WorkerLimits;
  /** Maximum number of peers that a worker sends to concurrently. */
  readonly connections: number;
  /** Maximum number of keys in memory for each region that is being announced. */
  readonly batchSize: number;
  /** Milliseconds without peers after which the node counts as offline. */
  readonly offlineAfter: number;
  /** Milliseconds in which a peer must accept all or some of the records. */
  readonly sendTimeout: number;
}

const OFFLINE_AFTER_MS = 2 * 3600 * 1000;

/** @throws NodeError for an invalid configuration */
export function sweepSettings(config: Pick<Repo["config"], "value">): SweepSettings {
  const { interval } = announcingSettings(config);
  const workers = {
    max: config.value("Provide.DHT.MaxWorkers") ?? 16,
    dedicated: {
      periodic: config.value("Provide.DHT.DedicatedPeriodicWorkers") ?? 2,
      burst: config.value("Provide.DHT.DedicatedBurstWorkers") ?? 1,
    },
  };
  if (workers.max < 1 || workers.dedicated.periodic + workers.dedicated.burst > workers.max) {
    throw failure("CONFIG_INVALID", {
      reason: "Provide.DHT.MaxWorkers must be at least 1, and at least the number of dedicated workers",
    });
  }
  return {
    interval,
    resumes: config.value("Provide.DHT.ResumeEnabled") !== false,
    workers,
    connections: Math.max(1, config.value("Provide.DHT.MaxProvideConnsPerWorker") ?? 20),
    batchSize: Math.max(1, config.value("Provide.DHT.KeystoreBatchSize") ?? 16_384),
    offlineAfter: durationOr(config.value("Provide.DHT.OfflineDelay"), OFFLINE_AFTER_MS),
    sendTimeout: durationOr(config.value("Provide.DHT.SendProviderRecordTimeout"), SEND_TIMEOUT_MS),
  };
}

const durationOr = (text: string | undefined, usual: number): number =>
  text === undefined || text === "" ? usual : parseDuration(text);
