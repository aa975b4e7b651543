/** Publishes again what was published, before it runs out (network section 3.2). */

import type { Key } from "../../storage/keystore/key.ts";
import type { Repo } from "../../storage/repo/repo.ts";
import { NodeError } from "../../util/errors.ts";
import { parseDuration } from "../../util/go/duration.ts";
import type { NodeLog } from "../../util/log.ts";
import { signRecord } from "../ipns_record/sign.ts";
import { formatTimestamp, parseTimestamp, timestampAfter } from "../ipns_record/timestamp.ts";
import type { PublishedRecord, PublishedRecords } from "./published_records.ts";

export interface RepublisherDeps {
  readonly config: Repo["config"];
  readonly log: NodeLog;
  readonly published: PublishedRecords;
  /** All keys of this node. */
  readonly keys: () => AsyncIterable<Key>;
  /** Gives a record to others. */
  readonly publish: (key: Key, bytes: Uint8Array, signal: AbortSignal) => Promise<void>;
}

const minute = 60_000;
const hour = 60 * minute;
const usual = { period: "4h", lifetime: "24h" };
/** Milliseconds: of the first round after the start, and of the next one after a round with a failure. */
const after = { start: minute, failure: 5 * minute };

export class Republisher {
  readonly #deps: RepublisherDeps;
  readonly #period: number;
  readonly #lifetime: number;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;

  /** @throws NodeError of a configuration that says what cannot be */
  constructor(parts: RepublisherDeps) {
    this.#deps = parts;
    const { config } = parts;
    const period = config.value("Ipns.RepublishPeriod");
    this.#period = durationOf("RepublishPeriod", period || usual.period);
    this.#lifetime = durationOf("RecordLifetime", config.value("Ipns.RecordLifetime") || usual.lifetime);
    if (this.#period < minute || this.#period > 24 * hour) {
      throw new NodeError(`config setting IPNS.RepublishPeriod is not between 1min and 1day: ${period}`);
    }
  }

  start(): void {
    this.#later(Math.min(after.start, this.#period));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    await this.#round;
  }

  #later(milliseconds: number): void {
    this.#timer = setTimeout(() => {
      this.#round = this.#run();
    }, milliseconds).unref();
  }

  async #run(): Promise<void> {
    const whole = await this.round(this.#stop.signal);
    if (!this.#stop.signal.aborted) this.#later(whole ? this.#period : after.failure);
  }

  /** One name after the other, all of them; tells whether each was published. Never rejects. */
  async round(signal: AbortSignal): Promise<boolean> {
    let whole = true;
    try {
      for await (const key of this.#deps.keys()) {
        if (signal.aborted) return false;
        whole = (await this.#republish(key, signal)) && whole;
      }
    } catch (error) {
      this.#complain(`keys cannot be read: ${(error as Error).message}`);
      whole = false;
    }
    return whole;
  }

  async #republish(key: Key, signal: AbortSignal): Promise<boolean> {
    const { published, publish } = this.#deps;
    try {
      if ((await published.get(key.id)) === undefined) return true;
      await publish(key, await published.update(key.id, (last) => this.#renewed(key, last), signal), signal);
      return true;
    } catch (error) {
      if (!signal.aborted) this.#complain(`${key.id} is not published again: ${(error as Error).message}`);
      return false;
    }
  }

  /** What the last one says, for longer. */
  #renewed(key: Key, last: PublishedRecord | undefined): Promise<Uint8Array> {
    if (last === undefined) throw new NodeError("its record is gone");
    const [end, least] = [parseTimestamp(last.record.validity) ?? 0n, timestampAfter(this.#lifetime)];
    return signRecord(key, { ...last.record, validity: formatTimestamp(end > least ? end : least) });
  }

  #complain(message: string): void {
    this.#deps.log.write("ipns-repub", "debug", message);
  }
}

function durationOf(name: string, text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new NodeError(`failure to parse config setting IPNS.${name}: ${(error as Error).message}`, { cause: error });
  }
}
