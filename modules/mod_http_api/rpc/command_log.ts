/** What runs and what ran, for `diag/cmds`. */

export interface LoggedCommand {
  readonly id: number;
  /** Path joined with slashes. */
  readonly command: string;
  readonly args: readonly string[];
  /** Those given and those with a default. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly start: Date;
  /** Undefined while it runs. */
  readonly end: Date | undefined;
}

type Entry = { -readonly [K in keyof LoggedCommand]: LoggedCommand[K] };

/** A full log drops ended commands at the latest here, whatever the time for which they are kept. */
const mostEnded = 10_000;
const dropEvery = 10;

export class CommandLog {
  #entries: Entry[] = [];
  #next = 0;
  /** Ends since ended commands were dropped last. */
  #ended = 0;
  /** Milliseconds for which ended commands are kept. */
  #keep = 0;
  readonly #listeners = new Set<(entry: LoggedCommand) => void>();

  /** The function that is returned is called when the command has ended. */
  begin(command: string, args: readonly string[], options: LoggedCommand["options"]): () => void {
    const entry: Entry = { id: this.#next++, command, args, options, start: new Date(), end: undefined };
    this.#entries.push(entry);
    this.#tell(entry);
    return () => {
      if (entry.end !== undefined) return;
      entry.end = new Date();
      this.#tell(entry);
      this.#ended += 1;
      // Now and then, as the reference; it costs a pass over all. Pairs beside one that runs would never make ten.
      if (this.#ended >= dropEvery || this.#entries.length % dropEvery === 0) this.#drop(this.#keep);
    };
  }

  list(): readonly LoggedCommand[] {
    return [...this.#entries];
  }

  /** Drops what has ended. */
  clear(): void {
    this.#drop(Number.NEGATIVE_INFINITY);
  }

  keep(milliseconds: number): void {
    this.#keep = milliseconds;
  }

  /** Tells of each start and each end, until the function that is returned is called. */
  listen(listener: (entry: LoggedCommand) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #drop(keep: number): void {
    this.#ended = 0;
    const since = Date.now() - keep;
    const kept = this.#entries.filter(({ end }) => end === undefined || end.getTime() > since);
    this.#entries = kept.length > mostEnded ? kept.filter(({ end }) => end === undefined) : kept;
  }

  #tell(entry: Entry): void {
    for (const listener of this.#listeners) listener({ ...entry });
  }
}
