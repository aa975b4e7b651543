/** How many requests a client may make: a token bucket for each address, of IPv6 for each network of 64 bits. */
import { isIPv6 } from "node:net";

/** Addresses that are remembered; of more, those that have not asked for the longest time begin anew. */
const MAX_CLIENTS = 10_000;
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

interface Bucket {
  left: number;
  at: number;
}

export class RateLimit {
  readonly #perSecond: number;
  readonly #burst: number;
  readonly #now: () => number;
  /** The latest to ask comes last. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(perSecond: number, burst: number, now: () => number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#now = now;
  }

  /** 0: the request may pass. Else the seconds after which the next one may. */
  take(address: string): number {
    const client = clientOf(address);
    const now = this.#now();
    const bucket = this.#buckets.get(client) ?? { left: this.#burst, at: now };
    this.#buckets.delete(client);
    if (this.#buckets.size >= MAX_CLIENTS) this.#buckets.delete(this.#buckets.keys().next().value as string);
    this.#buckets.set(client, bucket);
    bucket.left = Math.min(this.#burst, bucket.left + Math.max(0, now - bucket.at) * this.#perSecond);
    bucket.at = now;
    if (bucket.left < 1) return (1 - bucket.left) / this.#perSecond;
    bucket.left -= 1;
    return 0;
  }

  get clients(): number {
    return this.#buckets.size;
  }
}

/** Requests a second of `10/s`, `600/m` or `5000/h`; undefined for any other text. */
export function readRate(text: string): number | undefined {
  const [, amount, unit = ""] = /^([1-9]\d{0,8})\/([smh])$/.exec(text) ?? [];
  return amount === undefined ? undefined : Number(amount) / (SECONDS[unit] as number);
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
