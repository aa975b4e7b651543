/** Connections that one process passes on to the first: they wait while another one takes its place. */
import type { ListeningHandle } from "../ports/lent.ts";
import { closeHandle, type Link } from "./link.ts";

/** So long one waits, milliseconds. */
const MAX_WAIT_MS = 15_000;

interface Waiting {
  readonly handle: ListeningHandle;
  readonly head: Uint8Array;
  readonly late: NodeJS.Timeout;
}

export class PassedConnections {
  readonly #first: () => Link | undefined;
  readonly #waiting = new Set<Waiting>();

  /** `first`: the way to the first process, while it serves. */
  constructor(first: () => Link | undefined) {
    this.#first = first;
  }

  take(handle: ListeningHandle, head: Uint8Array): void {
    const link = this.#first();
    if (link !== undefined) {
      link.passHandle(handle, head, () => closeHandle(handle));
      return;
    }
    const late = setTimeout(() => {
      this.#waiting.delete(waiting);
      closeHandle(handle);
    }, MAX_WAIT_MS).unref();
    const waiting = { handle, head, late };
    this.#waiting.add(waiting);
  }

  /** The first process serves. */
  flush(): void {
    const waiting = this.#clear();
    for (const { handle, head } of waiting) this.take(handle, head);
  }

  close(): void {
    for (const { handle } of this.#clear()) closeHandle(handle);
  }

  #clear(): Waiting[] {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const { late } of waiting) clearTimeout(late);
    return waiting;
  }
}
