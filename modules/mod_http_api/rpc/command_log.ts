/** Running and recently finished commands, for `diag/cmds`. */

export interface LoggedCommand {
  readonly id: number;
  /** The command's path, joined with slashes. */
  readonly command: string;
  readonly args: readonly string[];
  /** The options that were given, and the defaults of the others. */
  readonly options: Readonly<Record<string, unknown>>;
  readonly start: Date;
  /** Undefined while the command runs. */
  readonly end: Date | undefined;
}

type Entry = { -readonly [K in keyof LoggedCommand]: LoggedCommand[K] };

/** If there are more entries than this, all finished commands are dropped, whatever their age. */
const MAX_FINISHED = 10_000;
const CLEANUP_INTERVAL = 10;

export class CommandLog {
  #entries: Entry[] = [];
  #next = 0;
  /** Commands finished since the last cleanup. */
  #ended = 0;
  /** Milliseconds for which finished commands are listed. */
  #keep = 0;
  readonly #listeners = new Set<(entry: LoggedCommand) => void>();

  /** Records the start of a command. Call the returned function when it has finished. */
  begin(command: string, args: readonly string[], options: LoggedCommand["options"]): () => void {
    const entry: Entry = { id: this.#next++, command, args, options, start: new Date(), end: undefined };
    this.#entries.push(entry);
    this.#notify(entry);
    return () => {
      if (entry.end !== undefined) return;
      entry.end = new Date();
      this.#notify(entry);
      this.#ended += 1;
      // Cleanup walks the whole log, so it runs only now and then, as in go-ipfs. It also
      // counts finished commands, because the length alone may never be a multiple of ten while a
      // command keeps running.
      if (this.#ended >= CLEANUP_INTERVAL || this.#entries.length % CLEANUP_INTERVAL === 0) this.#drop(this.#keep);
    };
  }

  list(): readonly LoggedCommand[] {
    return [...this.#entries];
  }

  /** Drops all finished commands. */
  clear(): void {
    this.#drop(Number.NEGATIVE_INFINITY);
  }

  keep(milliseconds: number): void {
    this.#keep = milliseconds;
  }

  /** Calls the listener for each start and each end until the returned function is called. */
  listen(listener: (entry: LoggedCommand) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #drop(keep: number): void {
    this.#ended = 0;
    const since = Date.now() - keep;
    const remaining = this.#entries.filter(({ end }) => end === undefined || end.getTime() > since);
    this.#entries = remaining.length > MAX_FINISHED ? remaining.filter(({ end }) => end === undefined) : remaining;
  }

  #notify(entry: Entry): void {
    for (const listener of this.#listeners) listener({ ...entry });
  }
}
