/** Tracks whether there are peers to announce to, and since when. */
import type { Clock } from "./clock.ts";

/**
 * `disconnected`: without peers for less than `offlineAfter`; `offline`: for longer, or since the
 * start.
 */
export type ConnectivityStatus = "online" | "disconnected" | "offline";

export class Connectivity {
  readonly #clock: Clock;
  readonly #offlineAfter: () => number;
  #isOnline = false;
  #wasOnline = false;
  /** When the status last changed, in milliseconds since 1970. */
  #changed: number;

  /**
   * @param offlineAfter returns the milliseconds without peers after which the node counts as
   * offline
   */
  constructor(clock: Clock, offlineAfter: () => number) {
    this.#clock = clock;
    this.#offlineAfter = offlineAfter;
    this.#changed = clock.now();
  }

  /** Records whether there are peers now; may be called repeatedly without a change. */
  record(isOnline: boolean): void {
    if (isOnline === this.#isOnline) return;
    this.#isOnline = isOnline;
    this.#wasOnline ||= isOnline;
    this.#changed = this.#clock.now();
  }

  get status(): ConnectivityStatus {
    if (this.#isOnline) return "online";
    return this.#wasOnline && this.since > this.#clock.now() - this.#offlineAfter() ? "disconnected" : "offline";
  }

  /**
   * When the first peer arrived or the last one left, in milliseconds since 1970; initially when
   * the node started.
   */
  get since(): number {
    return this.#changed;
  }

  /**
   * Since when there have been peers, in milliseconds since 1970; undefined while there are none.
   */
  get onlineSince(): number | undefined {
    return this.#isOnline ? this.#changed : undefined;
  }
}
