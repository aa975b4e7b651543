/** Connections that one process passes on to another: they wait while the next one takes its place. */
import type { ListeningHandle } from "../ports/lent.ts";
import { closeHandle, type Link } from "./link.ts";

/** So long one waits, milliseconds. */
const MAX_WAIT_MS = 15_000;

interface Waiting {
  readonly handle: ListeningHandle;
  readonly head: Uint8Array;
  readonly to: number;
  readonly late: NodeJS.Timeout;
}

export class PassedConnections {
  readonly #linkTo: (number: number) => Link | undefined;
  readonly #waiting = new Set<Waiting>();

  /** `linkTo`: the way to a process, while it serves. */
  constructor(linkTo: (number: number) => Link | undefined) {
    this.#linkTo = linkTo;
  }

  take(handle: ListeningHandle, head: Uint8Array, to: number): void {
    const link = this.#linkTo(to);
    if (link === undefined) this.#wait(handle, head, to);
    else {
      link.passHandle(handle, head, to, (error) => {
        if (error === null) closeHandle(handle);
        else this.#wait(handle, head, to);
      });
    }
  }

  #wait(handle: ListeningHandle, head: Uint8Array, to: number): void {
    const late = setTimeout(() => {
      this.#waiting.delete(waiting);
      closeHandle(handle);
    }, MAX_WAIT_MS).unref();
    const waiting = { handle, head, to, late };
    this.#waiting.add(waiting);
  }

  /** The process of this number serves. */
  flush(number: number): void {
    for (const waiting of this.#waiting) {
      const { handle, head, to, late } = waiting;
      if (to !== number) continue;
      this.#waiting.delete(waiting);
      clearTimeout(late);
      this.take(handle, head, to);
    }
  }

  close(): void {
    for (const { handle, late } of this.#waiting) {
      clearTimeout(late);
      closeHandle(handle);
    }
    this.#waiting.clear();
  }
}
