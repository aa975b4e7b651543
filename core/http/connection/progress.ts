import { Slots } from "../../util/slots.ts";

/** A transfer that depends on the speed of a client. */
export interface Flow {
  /** Bytes moved so far. */
  moved(): number;
  /** False while something other than the client causes the delay. */
  waiting(): boolean;
  /** Called once when the client was too slow. The watch has removed the flow by then. */
  expired(): void;
  /**
   * Milliseconds for which no bytes have to move, when that is longer than the timeout of all
   * flows.
   */
  patience?(): number;
  /** Bytes of memory that wait for the client. Default: 0. */
  buffered?(): number;
}

/** A flow in the watch. */
export interface Watched {
  readonly flow: Flow;
  /** The slot of the flow in the watch; undefined after it was removed. */
  slot: number | undefined;
  since: number;
  moved: number;
  buffered: number;
  /** The flow's patience at the last check, in milliseconds. */
  patience: number;
}

/**
 * Memory of a response whose body is read piece by piece, in bytes: data read ahead, and objects.
 */
export const STREAM_COST = 128 * 1024;

/**
 * Milliseconds without progress after which a client is too slow while the buffers exceed their
 * limit.
 */
const MAX_PRESSED_TIME = 1000;

/**
 * Cuts clients that are too slow. It measures progress and not duration: `bytes` must move within
 * each `timeout` seconds in which a flow waits for its client, or within the flow's own patience if
 * that is longer. When a flow's patience shrinks, its time starts again. While more than
 * `maxBuffered` bytes wait for clients, bytes must move within each second, the slowest clients are
 * cut first, and responses that have not begun wait. One timer serves all flows; it stops when
 * there are none.
 *
 * Only the time in which this process runs counts. Bytes that arrived while it was suspended or
 * busy are read before any client is judged.
 */
export class ProgressWatch {
  #timeout = 0;
  #bytes = 0;
  #maxBuffered = 0;
  #interval = 0;
  readonly #flows = new Slots<Watched>();
  readonly #queue: ((turn: number) => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  /**
   * Milliseconds that this process has been watching. The clock stops while the process does not
   * run.
   */
  #clock = 0;
  #ticked = 0;
  #buffered = 0;
  /**
   * Responses that began since the last tick and have not sent a piece. Each tick resets the
   * number: a response that is still silent then mostly waits for something else.
   */
  #beginning = 0;
  #turn = 0;

  constructor(timeout: number, bytes: number, maxBuffered = Number.POSITIVE_INFINITY) {
    this.configure(timeout, bytes, maxBuffered);
  }

  /** Applies other limits, also to flows that are being watched. */
  configure(timeout: number, bytes: number, maxBuffered: number): void {
    const isRunning = this.#timer !== undefined;
    if (isRunning) this.#pause();
    this.#timeout = timeout * 1000;
    this.#bytes = bytes;
    this.#maxBuffered = maxBuffered;
    this.#interval = Math.max(20, Math.min(MAX_PRESSED_TIME, this.#timeout / 4));
    if (isRunning) this.#run();
    this.#admit();
  }

  /** Starts to watch a flow. Returns the value that `delete` takes. */
  add(flow: Flow): Watched {
    const buffered = flow.buffered?.() ?? 0;
    this.#buffered += buffered;
    this.#run();
    const since = this.#now();
    const watched: Watched = {
      flow,
      slot: undefined,
      since,
      moved: flow.moved(),
      buffered: buffered,
      patience: this.#patience(flow),
    };
    watched.slot = this.#flows.add(watched);
    return watched;
  }

  /** Stops watching a flow. Does nothing when it has expired or was deleted before. */
  delete(watched: Watched | undefined): void {
    if (watched?.slot === undefined) return;
    this.#flows.delete(watched.slot);
    watched.slot = undefined;
    this.#buffered -= watched.buffered;
    this.#admit();
  }

  /**
   * Reserves memory for a response that is sent piece by piece. Returns a number for `begun` when
   * the response may begin at once, else a promise for it. Until `begun` is called, the response
   * counts as `STREAM_COST` bytes.
   */
  room(): Promise<number> | number {
    if (this.#isFull) return new Promise((resolve) => this.#queue.push(resolve));
    return this.#begin();
  }

  /** Releases a reservation of `room`: the response has sent its first piece, or sends none. */
  begun(turn: number): void {
    if (turn !== this.#turn) return;
    this.#beginning -= 1;
    this.#admit();
  }

  get #isFull(): boolean {
    return this.#buffered + this.#beginning * STREAM_COST > this.#maxBuffered;
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

  /** Stops the timer and keeps the time that has passed. `#run` starts it again. */
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
      const buffered = flow.buffered?.() ?? 0;
      this.#buffered += buffered - watched.buffered;
      watched.buffered = buffered;
      const patience = this.#patience(flow);
      const isLessPatient = patience < watched.patience;
      watched.patience = patience;
      if (!flow.waiting() || isLessPatient || moved - watched.moved >= this.#bytes) {
        watched.since = this.#clock;
        watched.moved = moved;
      } else if (this.#clock - watched.since >= patience) this.#expire(watched);
      else if (this.#clock - watched.since >= MAX_PRESSED_TIME && buffered > 0) slow.push(watched);
    }
    if (this.#buffered > this.#maxBuffered) {
      slow.sort((one, other) => one.since - other.since);
      for (const watched of slow) {
        if (this.#buffered <= this.#maxBuffered) break;
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

  /** An earlier expiry in the same tick may have deleted this flow. */
  #expire(watched: Watched): void {
    if (watched.slot === undefined) return;
    this.delete(watched);
    watched.flow.expired();
  }
}
