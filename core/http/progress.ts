import { Slots } from "../util/slots.ts";

/** Something that moves bytes while a client is waited for. */
export interface Flow {
  /** Bytes moved so far. */
  moved(): number;
  /** False while the delay is not the client's. */
  waiting(): boolean;
  /** The client was too slow; called once, the flow is forgotten. */
  expired(): void;
  /** Milliseconds in which it may stand still, where that is longer than the timeout of all. */
  patience?(): number;
  /** Bytes of memory that are kept until the client takes them; left out, none. */
  held?(): number;
}

/** A flow in the watch. */
export interface Watched {
  readonly flow: Flow;
  /** Undefined when the watch has it no more. */
  place: number | undefined;
  since: number;
  moved: number;
  held: number;
  /** Milliseconds in which it might stand still when it was last looked at. */
  patience: number;
}

/** Bytes that an answer holds whose body is read piece by piece: what is read ahead, and objects. */
export const STREAM_COST = 128 * 1024;

/** Milliseconds after which a client that takes nothing is too slow while more is held than may be. */
const MAX_PRESSED_TIME = 1000;

/**
 * Cuts clients that are too slow, by progress and not by duration: within each `timeout` seconds in which a flow
 * waits for its client, or longer where that has patience, `bytes` must move. When that patience ends, the time begins
 * anew. While more than `maxHeld` bytes wait for clients, they must move within each second, the slowest are cut first,
 * and what has not begun to send waits. One timer serves all flows, and none runs without any.
 *
 * Time counts while this process runs: whatever arrived while it was suspended, or busy, is taken in before anybody is
 * judged.
 */
export class ProgressWatch {
  #timeout = 0;
  #bytes = 0;
  #maxHeld = 0;
  #interval = 0;
  readonly #flows = new Slots<Watched>();
  readonly #queue: ((turn: number) => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Milliseconds that this process has been watching, of a time that stands still while it does not run. */
  #clock = 0;
  #ticked = 0;
  #held = 0;
  /** Answers that have begun, and not sent a piece, since the timer went last: most of them wait for other things later. */
  #beginning = 0;
  #turn = 0;

  constructor(timeout: number, bytes: number, maxHeld = Number.POSITIVE_INFINITY) {
    this.configure(timeout, bytes, maxHeld);
  }

  /** Other limits from now on, for what is being watched, too. */
  configure(timeout: number, bytes: number, maxHeld: number): void {
    const isRunning = this.#timer !== undefined;
    if (isRunning) this.#pause();
    this.#timeout = timeout * 1000;
    this.#bytes = bytes;
    this.#maxHeld = maxHeld;
    this.#interval = Math.max(20, Math.min(MAX_PRESSED_TIME, this.#timeout / 4));
    if (isRunning) this.#run();
    this.#admit();
  }

  /** Gives what `delete` takes. */
  add(flow: Flow): Watched {
    const held = flow.held?.() ?? 0;
    this.#held += held;
    this.#run();
    const since = this.#now();
    const watched: Watched = {
      flow,
      place: undefined,
      since,
      moved: flow.moved(),
      held,
      patience: this.#patience(flow),
    };
    watched.place = this.#flows.add(watched);
    return watched;
  }

  /** Nothing is done for one that has expired or been deleted before. */
  delete(watched: Watched | undefined): void {
    if (watched?.place === undefined) return;
    this.#flows.delete(watched.place);
    watched.place = undefined;
    this.#held -= watched.held;
    this.#admit();
  }

  /**
   * For an answer that is sent piece by piece: undefined when it may begin at once, else resolves when it may. Until
   * `begun` it counts as one that holds what such an answer does.
   */
  room(): Promise<number> | number {
    if (this.#isFull) return new Promise((resolve) => this.#queue.push(resolve));
    return this.#begin();
  }

  /** The answer that was given this by `room` has sent its first piece, or sends none. */
  begun(turn: number): void {
    if (turn !== this.#turn) return;
    this.#beginning -= 1;
    this.#admit();
  }

  get #isFull(): boolean {
    return this.#held + this.#beginning * STREAM_COST > this.#maxHeld;
  }

  #begin(): number {
    this.#beginning += 1;
    this.#run();
    return this.#turn;
  }

  #admit(): void {
    while (this.#queue.length > 0 && !this.#isFull) this.#queue.shift()?.(this.#begin());
  }

  #run(): void {
    if (this.#timer !== undefined) return;
    this.#ticked = performance.now();
    this.#timer = setInterval(() => this.#tick(), this.#interval).unref();
  }

  /** The timer begins anew with the next `#run`, and no time is lost. */
  #pause(): void {
    this.#clock = this.#now();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #now(): number {
    return this.#clock + Math.min(performance.now() - this.#ticked, this.#interval);
  }

  #tick(): void {
    this.#clock = this.#now();
    this.#ticked = performance.now();
    const slow: Watched[] = [];
    for (const watched of this.#flows) {
      const { flow } = watched;
      const moved = flow.moved();
      const held = flow.held?.() ?? 0;
      this.#held += held - watched.held;
      watched.held = held;
      const patience = this.#patience(flow);
      const isLessPatient = patience < watched.patience;
      watched.patience = patience;
      if (!flow.waiting() || isLessPatient || moved - watched.moved >= this.#bytes) {
        watched.since = this.#clock;
        watched.moved = moved;
      } else if (this.#clock - watched.since >= patience) this.#expire(watched);
      else if (this.#clock - watched.since >= MAX_PRESSED_TIME && held > 0) slow.push(watched);
    }
    if (this.#held > this.#maxHeld) {
      slow.sort((one, other) => one.since - other.since);
      for (const watched of slow) {
        if (this.#held <= this.#maxHeld) break;
        this.#expire(watched);
      }
    }
    const isBusy = this.#flows.size > 0 || this.#beginning > 0;
    this.#beginning = 0;
    this.#turn += 1;
    this.#admit();
    if (isBusy || this.#queue.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #patience(flow: Flow): number {
    return Math.max(this.#timeout, flow.patience?.() ?? 0);
  }

  /** Those that have expired before may have deleted it. */
  #expire(watched: Watched): void {
    if (watched.place === undefined) return;
    this.delete(watched);
    watched.flow.expired();
  }
}
