/** A clock that jumps from one event to the next, so that days pass within seconds. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "#node/network/kad/sweep/clock.ts";

interface Event {
  readonly at: number;
  readonly order: number;
  /** Undefined if it was cancelled. */
  run: (() => void) | undefined;
}

export class VirtualClock implements Clock {
  #now: number;
  #order = 0;
  /** A binary heap by time and order of arrival. */
  readonly #events: Event[] = [];

  constructor(now = 1_700_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, run: () => void): () => void {
    const event: Event = { at: this.#now + Math.max(0, milliseconds), order: this.#order++, run };
    this.#push(event);
    return () => {
      event.run = undefined;
    };
  }

  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      this.after(milliseconds, resolve);
    });
  }

  /** Advances the clock. All consequences of an event are processed before the next event. */
  async pass(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    await nextTurn();
    for (let first = this.#events[0]; first !== undefined && first.at <= end; first = this.#events[0]) {
      this.#pop();
      if (first.run === undefined) continue;
      this.#now = first.at;
      first.run();
      await nextTurn();
    }
    this.#now = end;
  }

  #push(event: Event): void {
    const heap = this.#events;
    let at = heap.push(event) - 1;
    for (let parent = (at - 1) >> 1; at > 0; parent = (at - 1) >> 1) {
      if (!isBefore(event, heap[parent] as Event)) break;
      heap[at] = heap[parent] as Event;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#events;
    const last = heap.pop() as Event;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, heap[child] as Event)) child += 1;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
  }
}

const isBefore = (one: Event, other: Event): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order);
