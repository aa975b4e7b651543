/**
 * Lines of an answer that come while the body of the request is still on its way. A client may send all of it before it reads
 * the first of them: if they were only made as they are read, both sides would wait for each other.
 */
import { Backlog, type BacklogLimits } from "./backlog.ts";

export interface AheadDeps extends Partial<BacklogLimits> {
  /** Folder of the file for what the memory is not for; made when missing. */
  readonly folder: () => string;
  /** Whether the client may still be sending: while it is not, lines are made as it reads them. */
  readonly isComing: () => boolean;
}

/** Reads `source` ahead of its reader for as long as the body is coming, and gives the same, joined where the reader is behind. */
export class Ahead implements AsyncIterator<Uint8Array, undefined> {
  readonly #source: AsyncIterator<string | Uint8Array>;
  readonly #deps: AheadDeps;
  readonly #backlog: Backlog;
  #running: Promise<void> | undefined;
  /** Ends a wait for the reader. */
  #go: (() => void) | undefined;
  #isOver = false;
  #failure: { readonly reason: unknown } | undefined;
  /** Wakes the reader. */
  #arrived: (() => void) | undefined;

  constructor(source: AsyncIterator<string | Uint8Array>, deps: AheadDeps) {
    this.#source = source;
    this.#deps = deps;
    this.#backlog = new Backlog(deps.folder, deps);
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#running ??= this.#run();
    for (;;) {
      const piece = await this.#backlog.take();
      this.#go?.();
      if (piece !== undefined) return { done: false, value: piece };
      if (!this.#backlog.isEmpty) continue;
      if (this.#isOver) break;
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
      this.#arrived = undefined;
    }
    await this.#backlog.close();
    if (this.#failure !== undefined) throw this.#failure.reason;
    return { done: true, value: undefined };
  }

  /** Ends the source, which may be waiting for the body: whoever calls has ended that. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#isOver = true;
    this.#go?.();
    this.#arrived?.();
    await this.#source.return?.();
    await this.#running;
    await this.#backlog.close();
    return { done: true, value: undefined };
  }

  async #run(): Promise<void> {
    try {
      while (!this.#isOver) {
        const { done, value } = await this.#source.next();
        if (done === true || this.#isOver) break;
        await this.#backlog.put(typeof value === "string" ? Buffer.from(value) : value);
        this.#arrived?.();
        await this.#room();
      }
    } catch (reason) {
      this.#failure = { reason };
    } finally {
      this.#isOver = true;
      this.#arrived?.();
    }
  }

  /** Waits for the reader where nothing may be made ahead of it. */
  async #room(): Promise<void> {
    const mayGoOn = () => this.#isOver || this.#backlog.isEmpty || (this.#deps.isComing() && !this.#backlog.isFull);
    while (!mayGoOn()) {
      await new Promise<void>((resolve) => {
        this.#go = resolve;
      });
      this.#go = undefined;
    }
  }
}
