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

  record(): UsageRecord {
    const { requests, received, sent, lastUsed } = this;
    const day = new Date(this.#day * DAY).toISOString().slice(0, 10);
    const today = { day, day_received: this.#dayReceived, day_sent: this.#daySent };
    return { requests, received, sent, ...today, ...(lastUsed === undefined ? {} : { last_used: lastUsed }) };
  }

  #turn(now: number): void {
    const today = dayOf(now);
    if (today === this.#day) return;
    this.#day = today;
    this.#dayReceived = 0;
    this.#daySent = 0;
  }
}

function countOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : 0;
}
