/** What the configuration says of the sweep. */
import type { Repo } from "../../../storage/repo/repo.ts";
import { NodeError } from "../../../util/errors.ts";
import { parseDuration } from "../../../util/go/duration.ts";
import { SEND_TIMEOUT_MS } from "../announcer.ts";
import { announcingSettings } from "../strategies.ts";
import type { WorkPlaces } from "./workers.ts";

export interface SweepSettings {
  /** Milliseconds in which everything is announced once; not positive for never. */
  readonly interval: number;
  /** Goes on after a restart where it was; otherwise it begins anew. */
  readonly resumes: boolean;
  readonly workers: WorkPlaces;
  /** Peers that a worker sends to at a time. */
  readonly connections: number;
  /** Keys that are held in memory at a time, of each region that is announced. */
  readonly batchSize: number;
  /** Milliseconds without peers after which the node counts as offline. */
  readonly offlineAfter: number;
  /** Milliseconds in which a peer has to take records, or some of them. */
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
    throw new NodeError("Provide.DHT.MaxWorkers must be at least 1, and as many as are dedicated");
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
