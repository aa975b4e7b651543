/** Counts the requests and bytes of a token; the counts are saved from time to time. */

import type { TokenRefusalReason } from "../types.ts";

/** The counts in the file. */
export interface UsageRecord {
  readonly last_used?: string;
  readonly requests?: number;
  readonly received?: number;
  readonly sent?: number;
  /** The day of the next two counts. */
  readonly day?: string;
  readonly day_received?: number;
  readonly day_sent?: number;
}

const MINUTE = 60_000;
const DAY = 86_400_000;

const dayOf = (now: number) => Math.floor(now / DAY);

/** Returns the seconds until the next day starts (UTC). */
export function secondsToMidnight(now: number): number {
  return Math.ceil((DAY - (now % DAY)) / 1000);
}

export class Usage {
  /** Refusals since the start. */
  readonly refused: Partial<Record<TokenRefusalReason, number>> = {};
  requests: number;
  received: number;
  sent: number;
  #lastUsed: number | undefined;
  #day: number;
  #dayReceived: number;
  #daySent: number;
  /** The part of the counts that other processes have added. */
  readonly #joined = { requests: 0, received: 0, sent: 0 };
  /** The counts in the file, as far as this process knows. */
  #saved: UsageRecord;

  constructor(record: UsageRecord = {}) {
    this.requests = countOf(record.requests);
    this.received = countOf(record.received);
    this.sent = countOf(record.sent);
    const used = Date.parse(record.last_used ?? "");
    this.#lastUsed = Number.isNaN(used) ? undefined : used;
    const day = Date.parse(record.day ?? "");
    this.#day = Number.isNaN(day) ? 0 : dayOf(day);
    this.#dayReceived = countOf(record.day_received);
    this.#daySent = countOf(record.day_sent);
    this.#saved = record;
  }

  /** The time of the last use, to the minute. */
  get lastUsed(): string | undefined {
    return this.#lastUsed === undefined ? undefined : new Date(this.#lastUsed).toISOString();
  }

  used(now: number): void {
    this.requests += 1;
    this.#lastUsed = now - (now % MINUTE);
  }

  refuse(reason: TokenRefusalReason): void {
    this.refused[reason] = (this.refused[reason] ?? 0) + 1;
  }

  moved(received: number, sent: number, now: number): void {
    this.#turn(now);
    this.received += received;
    this.sent += sent;
    this.#dayReceived += received;
    this.#daySent += sent;
  }

  /** Returns the bytes of the current day, or of all days. */
  spent(direction: "received" | "sent", daily: boolean, now: number): number {
    if (!daily) return this[direction];
    this.#turn(now);
    return direction === "received" ? this.#dayReceived : this.#daySent;
  }

  /**
   * Adds the counts that other processes have saved to the file since; without an entry in the file
   * nothing changes.
   */
  join(record: UsageRecord | undefined): void {
    const saved = this.#saved;
    if (record === undefined) return;
    const since = (name: "requests" | "received" | "sent" | "day_received" | "day_sent", before = saved) =>
      Math.max(0, countOf(record[name]) - countOf(before[name]));
    for (const name of ["requests", "received", "sent"] as const) {
      const more = since(name);
      this[name] += more;
      this.#joined[name] += more;
    }
    const day = dayOf(Date.parse(record.day ?? "") || 0);
    // Another process may have seen the day start earlier or later.
    if (day > this.#day) this.#begin(day);
    if (day === this.#day) {
      const before = record.day === saved.day ? saved : {};
      this.#dayReceived += since("day_received", before);
      this.#daySent += since("day_sent", before);
    }
    const used = Date.parse(record.last_used ?? "") || 0;
    if (used > (this.#lastUsed ?? 0)) this.#lastUsed = used;
    this.#saved = record;
  }

  /** The counts of this process; other processes report their own. */
  get own(): Readonly<Record<"requests" | "received" | "sent", number>> {
    const { requests, received, sent } = this.#joined;
    return { requests: this.requests - requests, received: this.received - received, sent: this.sent - sent };
  }

  /** Records what the file contains now. */
  keep(record: UsageRecord): void {
    this.#saved = record;
  }

  record(): UsageRecord {
    const { requests, received, sent, lastUsed } = this;
    const day = new Date(this.#day * DAY).toISOString().slice(0, 10);
    const ofDay = { day, day_received: this.#dayReceived, day_sent: this.#daySent };
    return { requests, received, sent, ...ofDay, ...(lastUsed === undefined ? {} : { last_used: lastUsed }) };
  }

  #turn(now: number): void {
    const day = dayOf(now);
    if (day !== this.#day) this.#begin(day);
  }

  #begin(day: number): void {
    this.#day = day;
    this.#dayReceived = 0;
    this.#daySent = 0;
  }
}

function countOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : 0;
}
