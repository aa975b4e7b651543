/** Whether there are peers to announce to, and since when that is so. */
import type { Clock } from "./clock.ts";

/** `disconnected`: without peers for a moment; `offline`: for long, or since the start. */
export type ConnectivityStatus = "online" | "disconnected" | "offline";

export class Connectivity {
  readonly #clock: Clock;
  readonly #offlineAfter: () => number;
  #isOnline = false;
  #wasOnline = false;
  /** Milliseconds since 1970. */
  #changed: number;

  /** @param offlineAfter milliseconds without peers after which the node counts as offline */
  constructor(clock: Clock, offlineAfter: () => number) {
    this.#clock = clock;
    this.#offlineAfter = offlineAfter;
    this.#changed = clock.now();
  }

  /** To be told at each look. */
  note(isOnline: boolean): void {
    if (isOnline === this.#isOnline) return;
    this.#isOnline = isOnline;
    this.#wasOnline ||= isOnline;
    this.#changed = this.#clock.now();
  }

  get status(): ConnectivityStatus {
    if (this.#isOnline) return "online";
    return this.#wasOnline && this.since > this.#clock.now() - this.#offlineAfter() ? "disconnected" : "offline";
  }

  /** When that began, in milliseconds since 1970. */
  get since(): number {
    return this.#changed;
  }

  /** Undefined without peers. */
  get onlineSince(): number | undefined {
    return this.#isOnline ? this.#changed : undefined;
  }
}
