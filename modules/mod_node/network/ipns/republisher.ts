/** Publishes records again before they expire (`Ipns.RepublishPeriod`). */

import type { Key } from "../../storage/keystore/key.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { failure, NodeError } from "../../util/errors.ts";
import { formatDuration, parseDuration } from "../../util/go/duration.ts";
import type { NodeLog } from "../../util/log.ts";
import { signRecord } from "../ipns_record/sign.ts";
import { formatTimestamp, parseTimestamp, timestampAfter } from "../ipns_record/timestamp.ts";
import type { PublishedRecord, PublishedRecords } from "./published_records.ts";

export interface RepublisherDeps {
  readonly config: Repo["config"];
  readonly log: NodeLog;
  readonly published: PublishedRecords;
  /**
   * Whether to accept any period, because tests of other programs set very short ones; otherwise a
   * period that is out of bounds is refused.
   */
  readonly anyPeriod: boolean;
  /** Yields all keys of this node. */
  readonly keys: () => AsyncIterable<Key>;
  /** Publishes a record over the network. */
  readonly publish: (key: Key, bytes: Uint8Array, signal: AbortSignal) => Promise<void>;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DEFAULT_PERIOD = "4h";
const DEFAULT_LIFETIME = "24h";
/** Milliseconds from the start to the first round, and from a round with a failure to the next. */
const FIRST_ROUND_AFTER_MS = MINUTE_MS;
const RETRY_AFTER_MS = 5 * MINUTE_MS;
/** Minimum number of milliseconds between two rounds, whatever the period is. */
const MIN_DELAY_MS = 1000;

/** All times are in milliseconds. */
interface Settings {
  readonly period: number;
  readonly lifetime: number;
}

function settingsOf({ config, anyPeriod }: Pick<RepublisherDeps, "config" | "anyPeriod">): Settings {
  const period = durationOf("RepublishPeriod", config.value("Ipns.RepublishPeriod") || DEFAULT_PERIOD);
  const lifetime = durationOf("RecordLifetime", config.value("Ipns.RecordLifetime") || DEFAULT_LIFETIME);
  if (!anyPeriod && (period < MINUTE_MS || period > 24 * HOUR_MS)) {
    throw failure("CONFIG_INVALID", {
      reason: `config setting IPNS.RepublishPeriod is not between 1min and 1day: ${formatDuration(period)}`,
    });
  }
  if (lifetime < period) {
    throw failure("CONFIG_INVALID", {
      reason:
        `config setting IPNS.RecordLifetime (${formatDuration(lifetime)}) must be >= IPNS.RepublishPeriod ` +
        `(${formatDuration(period)}), otherwise records expire before they are republished`,
    });
  }
  return { period, lifetime };
}

export class Republisher {
  readonly #deps: RepublisherDeps;
  #settings: Settings;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;

  /** @throws NodeError for an invalid configuration */
  constructor(deps: RepublisherDeps) {
    this.#deps = deps;
    this.#settings = settingsOf(deps);
  }

  start(): void {
    this.#schedule(Math.min(FIRST_ROUND_AFTER_MS, this.#settings.period));
  }

  /**
   * Applies the current configuration. @throws NodeError for an invalid one; the previous settings
   * then stay in effect
   */
  renew(): void {
    const { period } = this.#settings;
    this.#settings = settingsOf(this.#deps);
    if (this.#settings.period === period || this.#timer === undefined) return;
    clearTimeout(this.#timer);
    if (this.#round === undefined) this.start();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    await this.#round;
  }

  #schedule(milliseconds: number): void {
    this.#timer = setTimeout(
      () => {
        this.#round = this.#run().finally(() => {
          this.#round = undefined;
        });
      },
      Math.max(milliseconds, MIN_DELAY_MS),
    ).unref();
  }

  async #run(): Promise<void> {
    const isComplete = await this.round(this.#stop.signal);
    if (!this.#stop.signal.aborted) this.#schedule(isComplete ? this.#settings.period : RETRY_AFTER_MS);
  }

  /** Publishes all names one after the other; resolves to whether all succeeded. Never rejects. */
  async round(signal: AbortSignal): Promise<boolean> {
    let isComplete = true;
    try {
      for await (const key of this.#deps.keys()) {
        if (signal.aborted) return false;
        isComplete = (await this.#republish(key, signal)) && isComplete;
      }
    } catch (error) {
      this.#log(`cannot read keys: ${(error as Error).message}`);
      isComplete = false;
    }
    return isComplete;
  }

  async #republish(key: Key, signal: AbortSignal): Promise<boolean> {
    const { published, publish } = this.#deps;
    try {
      if ((await published.get(key.id)) === undefined) return true;
      await publish(key, await published.update(key.id, (last) => this.#renewed(key, last), signal), signal);
      return true;
    } catch (error) {
      if (!signal.aborted) this.#log(`cannot republish ${key.id}: ${(error as Error).message}`);
      return false;
    }
  }

  /** Signs the last record again with a later expiry. */
  #renewed(key: Key, last: PublishedRecord | undefined): Promise<Uint8Array> {
    if (last === undefined) throw new NodeError("ROUTING_NOT_FOUND", "its record was removed");
    const end = parseTimestamp(last.record.validity) ?? 0n;
    const least = timestampAfter(this.#settings.lifetime);
    const versions = last.record.signatureV1.length > 0 ? "both" : "V2";
    return signRecord(key, { ...last.record, validity: formatTimestamp(end > least ? end : least) }, versions);
  }

  #log(message: string): void {
    this.#deps.log.write("ipns-repub", "debug", message);
  }
}

function durationOf(name: string, text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw failure(
      "CONFIG_INVALID",
      { reason: `failure to parse config setting IPNS.${name}: ${(error as Error).message}` },
      error,
    );
  }
}
