import { FileCache } from "./file_cache.ts";
import { Jobs } from "./jobs.ts";

export interface Limits {
  readonly cacheBytes: number;
  readonly cachedFile: number;
  readonly jobs: number;
  readonly streams: number;
}

/** Limits that all compression on the server shares. */
export class Bounds {
  readonly cache: FileCache;
  readonly jobs: Jobs;
  #limits: Limits;
  #streams = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
    this.cache = new FileCache(limits.cacheBytes);
    this.jobs = new Jobs(limits.jobs);
  }

  set limits(limits: Limits) {
    this.#limits = limits;
    this.cache.max = limits.cacheBytes;
    this.jobs.max = limits.jobs;
  }

  /** Maximum size of a cached file in bytes. */
  get cachedFile(): number {
    return this.#limits.cachedFile;
  }

  /**
   * Reserves a slot for a response that is compressed piece by piece. Returns the function that
   * releases the slot; undefined if none is free.
   */
  enterStream(): (() => void) | undefined {
    if (this.#streams >= this.#limits.streams) return undefined;
    this.#streams += 1;
    return () => {
      this.#streams -= 1;
    };
  }
}
