/** Limits the rate of requests with token buckets, for one caller or for each address. */
import { isIPv6 } from "node:net";
import { invalidOption } from "./errors.ts";

/**
 * Maximum number of addresses in memory; those without requests for the longest time are forgotten
 * first.
 */
const MAX_CLIENTS = 10_000;
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

export interface Rate {
  readonly perSecond: number;
  /** Maximum number of requests at once. */
  readonly burst: number;
}

/** A token bucket: unused requests accumulate up to the burst. */
export class Bucket {
  readonly #rate: Rate;
  #left: number;
  #at: number;

  constructor(rate: Rate, now: number) {
    this.#rate = rate;
    this.#left = rate.burst;
    this.#at = now;
  }

  /**
   * Returns 0 if the request is allowed; otherwise the seconds after which it is. `cost`: how many
   * requests it counts for, and at most as many as the burst.
   */
  take(now: number, cost = 1): number {
    // A clock that was set back changes nothing.
    const { perSecond, burst } = this.#rate;
    const passed = Math.max(0, now - this.#at) / 1000;
    this.#left = Math.min(burst, this.#left + passed * perSecond);
    this.#at = now;
    const needed = Math.min(cost, burst);
    if (this.#left < needed) return Math.max(1, Math.ceil((needed - this.#left) / perSecond));
    this.#left -= needed;
    return 0;
  }
}

/** One bucket for each address; IPv6 clients share one for each /64 network. */
export class RateLimit {
  readonly rate: Rate;
  readonly #now: () => number;
  /** Buckets with the most recently used one last. */
  readonly #buckets = new Map<string, Bucket>();

  /** @param now milliseconds by any clock */
  constructor(rate: Rate, now: () => number = () => performance.now()) {
    this.rate = rate;
    this.#now = now;
  }

  /**
   * Returns 0 if the request is allowed; otherwise the whole seconds after which the next one is.
   */
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

/**
 * Returns the requests per second for `10/s`, `600/m` or `5000/h`; undefined for any other text.
 */
export function readRate(text: string): number | undefined {
  const [, amount = 0, unit = ""] = /^(\d{1,9})\/([smh])$/.exec(text) ?? [];
  return Number(amount) === 0 ? undefined : Number(amount) / (SECONDS[unit] as number);
}

/**
 * Returns the rate of an option; undefined for an empty text. A burst of 0 means the requests of
 * one second, at least one.
 * @throws {ModhostError} OPTION_INVALID
 */
export function rateOption(text: string, burst: number, option: string): Rate | undefined {
  if (text === "") return undefined;
  const perSecond = readRate(text);
  if (perSecond === undefined) throw invalidOption(option, text, "it must be a rate such as 10/s, 600/m or 5000/h");
  return { perSecond, burst: burst > 0 ? burst : Math.max(1, Math.floor(perSecond)) };
}

/** Returns the key of a client. A customer of a provider has a whole /64 network. */
export function clientOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  // The groups that "::" omits come before the tail.
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
