/**
 * Retries modules that failed because something is missing that will appear by itself, such as a
 * database that starts later than the server.
 */

export interface LateLoadsDeps {
  readonly modules: {
    /** Returns the names of modules that failed to load and can be retried. */
    late(): readonly string[];
    loadAgain(names: readonly string[]): Promise<void>;
  };
  /** Runs a change of the running host after earlier ones. */
  enqueue(operation: () => Promise<void>): Promise<void>;
  log: { info(format: string, ...values: unknown[]): void };
}

/**
 * Seconds of the first and of the longest pause. Each pause is twice as long as the previous one.
 */
const MIN_PAUSE = 2;
const MAX_PAUSE = 30;

export class LateLoads {
  readonly #deps: LateLoadsDeps;
  #timer: NodeJS.Timeout | undefined;
  #pause = MIN_PAUSE;
  #stopped = false;

  constructor(deps: LateLoadsDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (!this.#stopped) this.#timer = setTimeout(() => void this.#try(), this.#pause * 1000).unref();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #try(): Promise<void> {
    const { modules, enqueue, log } = this.#deps;
    const names = modules.late();
    // The host refuses this when it is no longer running.
    if (names.length > 0) await enqueue(() => modules.loadAgain(names)).catch(() => undefined);
    const left = new Set(modules.late());
    const come = names.filter((name) => !left.has(name));
    if (come.length > 0) log.info("loaded now: %s", come.join(", "));
    this.#pause = left.size === 0 ? MIN_PAUSE : Math.min(MAX_PAUSE, this.#pause * 2);
    this.start();
  }
}
