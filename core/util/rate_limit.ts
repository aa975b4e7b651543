/** How many requests may come in a time: token buckets, of one who asks or of each address that asks. */
import { isIPv6 } from "node:net";
import { invalidOption } from "./errors.ts";

/** Addresses that are remembered; of more, those that have not asked for the longest time begin anew. */
const MAX_CLIENTS = 10_000;
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

export interface Rate {
  readonly perSecond: number;
  /** Requests that may come at once. */
  readonly burst: number;
}

/** Requests that may come in a time: what is not used of it waits, up to the burst. */
export class Bucket {
  readonly #rate: Rate;
  #left: number;
  #at: number;

  constructor(rate: Rate, now: number) {
    this.#rate = rate;
    this.#left = rate.burst;
    this.#at = now;
  }

  /** 0 when the request may be answered; otherwise the seconds after which one may. */
  take(now: number): number {
    // A clock that was set back gives nothing, and takes nothing.
    const { perSecond, burst } = this.#rate;
    const passed = Math.max(0, now - this.#at) / 1000;
    this.#left = Math.min(burst, this.#left + passed * perSecond);
    this.#at = now;
    if (this.#left < 1) return Math.max(1, Math.ceil((1 - this.#left) / perSecond));
    this.#left -= 1;
    return 0;
  }
}

/** A bucket for each address, of IPv6 for each network of 64 bits. */
export class RateLimit {
  readonly rate: Rate;
  readonly #now: () => number;
  /** The latest to ask comes last. */
  readonly #buckets = new Map<string, Bucket>();

  /** @param now milliseconds by any clock */
  constructor(rate: Rate, now: () => number = () => performance.now()) {
    this.rate = rate;
    this.#now = now;
  }

  /** 0: the request may pass. Else the whole seconds after which the next one may. */
  take(address: string): number {
    const client = clientOf(address);
    const now = this.#now();
    const bucket = this.#buckets.get(client) ?? new Bucket(this.rate, now);
    this.#buckets.delete(client);
    if (this.#buckets.size >= MAX_CLIENTS) this.#buckets.delete(this.#buckets.keys().next().value as string);
    this.#buckets.set(client, bucket);
    return bucket.take(now);
  }

  get clients(): number {
    return this.#buckets.size;
  }
}

/** Requests a second of `10/s`, `600/m` or `5000/h`; undefined for any other text. */
export function readRate(text: string): number | undefined {
  const [, amount = 0, unit = ""] = /^(\d{1,9})\/([smh])$/.exec(text) ?? [];
  return Number(amount) === 0 ? undefined : Number(amount) / (SECONDS[unit] as number);
}

/**
 * The rate of an option: none for an empty text. A burst of 0 stands for the requests of one second, at least one.
 *
 * @throws {ModhostError} OPTION_INVALID
 */
export function rateOption(text: string, burst: number, option: string): Rate | undefined {
  if (text === "") return undefined;
  const perSecond = readRate(text);
  if (perSecond === undefined) throw invalidOption(option, text, "it must be a rate such as 10/s, 600/m or 5000/h");
  return { perSecond, burst: burst > 0 ? burst : Math.max(1, Math.floor(perSecond)) };
}

/** One customer of a provider has a whole network of 64 bits. */
export function clientOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  // What "::" leaves out stands before the tail: four groups are known when the head has as many.
  if (tail !== undefined) {
    const after = tail === "" ? [] : tail.split(":");
    const width = after.length + (tail.includes(".") ? 1 : 0);
    while (groups.length + width < 8) groups.push("0");
    groups.push(...after);
  }
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":");
}
