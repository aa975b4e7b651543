/** Records why instances outside of the host's thread ended. The next instance shows the reason. */

/** Seconds for which an incident is shown. */
const SHOWN_SECONDS = 24 * 3600;

/** Milliseconds between two replacements of the same instance because of a limit, at least. */
const RETIRE_MS = 60_000;

/** A sentence without its subject, such as "was restarted: its sandbox ended: ...". */
export interface Incident {
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

export class Incidents {
  /** By `name@host`. */
  readonly #next = new Map<string, Incident>();
  readonly #retired = new Map<string, number>();

  /** Records why an instance ends. */
  record(key: string, text: string): void {
    this.#next.set(key, { text, at: Date.now() });
  }

  /** Returns why the previous instance ended, once. */
  take(key: string): Incident | undefined {
    const found = this.#next.get(key);
    this.#next.delete(key);
    return found;
  }

  /** Whether an instance may be replaced now. Then it counts as replaced. */
  mayRetire(key: string, now = performance.now()): boolean {
    if (now - (this.#retired.get(key) ?? Number.NEGATIVE_INFINITY) < RETIRE_MS) return false;
    this.#retired.set(key, now);
    return true;
  }
}

/** Returns the note for operators; undefined once it is old. */
export function incidentNote({ text, at }: Incident, now = Date.now()): string | undefined {
  if (now - at > SHOWN_SECONDS * 1000) return undefined;
  return `${text} (${new Date(at).toISOString().slice(0, 19)}Z)`;
}
