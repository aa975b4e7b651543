/** What was done with a token: counters of requests and bytes, kept approximately. */

import type { TokenRefusalReason } from "../types.ts";

/** As the file has it. */
export interface UsageRecord {
  readonly last_used?: string;
  readonly requests?: number;
  readonly received?: number;
  readonly sent?: number;
  /** Of the day `day`. */
  readonly day?: string;
  readonly day_received?: number;
  readonly day_sent?: number;
}

const MINUTE = 60_000;
const DAY = 86_400_000;

const dayOf = (now: number) => Math.floor(now / DAY);

/** Seconds until the next day begins (UTC). */
export function secondsToMidnight(now: number): number {
  return Math.ceil((DAY - (now % DAY)) / 1000);
}

export class Usage {
  /** Since the start. */
  readonly refused: Partial<Record<TokenRefusalReason, number>> = {};
  requests: number;
  received: number;
  sent: number;
  #lastUsed: number | undefined;
  #day: number;
  #dayReceived: number;
  #daySent: number;
  /** Of the counts, those that other processes have joined. */
  readonly #joined = { requests: 0, received: 0, sent: 0 };
  /** What the file has of all this, as far as this process knows. */
  #kept: UsageRecord;

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
    this.#kept = record;
  }

  /** To the minute. */
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

  /** Bytes of today, or of all days. */
  spent(direction: "received" | "sent", daily: boolean, now: number): number {
    if (!daily) return this[direction];
    this.#turn(now);
    return direction === "received" ? this.#dayReceived : this.#daySent;
  }

  /** Adds what other processes have counted since, by what the file has now; without an entry there it stays as it is. */
  join(record: UsageRecord | undefined): void {
    const kept = this.#kept;
    if (record === undefined) return;
    const since = (name: "requests" | "received" | "sent" | "day_received" | "day_sent", before = kept) =>
      Math.max(0, countOf(record[name]) - countOf(before[name]));
    for (const name of ["requests", "received", "sent"] as const) {
      const more = since(name);
      this[name] += more;
      this.#joined[name] += more;
    }
    const day = dayOf(Date.parse(record.day ?? "") || 0);
    // Another process may have seen the day begin, or not yet.
    if (day > this.#day) this.#begin(day);
    if (day === this.#day) {
      const before = record.day === kept.day ? kept : {};
      this.#dayReceived += since("day_received", before);
      this.#daySent += since("day_sent", before);
    }
    const used = Date.parse(record.last_used ?? "") || 0;
    if (used > (this.#lastUsed ?? 0)) this.#lastUsed = used;
    this.#kept = record;
  }

  /** Without what other processes have counted meanwhile: they tell it themselves. */
  get own(): Readonly<Record<"requests" | "received" | "sent", number>> {
    const { requests, received, sent } = this.#joined;
    return { requests: this.requests - requests, received: this.received - received, sent: this.sent - sent };
  }

  /** The file has this now. */
  keep(record: UsageRecord): void {
    this.#kept = record;
  }

  record(): UsageRecord {
    const { requests, received, sent, lastUsed } = this;
    const day = new Date(this.#day * DAY).toISOString().slice(0, 10);
    const today = { day, day_received: this.#dayReceived, day_sent: this.#daySent };
    return { requests, received, sent, ...today, ...(lastUsed === undefined ? {} : { last_used: lastUsed }) };
  }

  #turn(now: number): void {
    const today = dayOf(now);
    if (today !== this.#day) this.#begin(today);
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
