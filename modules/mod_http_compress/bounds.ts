import { FileCache } from "./file_cache.ts";
import { Jobs } from "./jobs.ts";

export interface Limits {
  readonly cacheBytes: number;
  readonly cachedFile: number;
  readonly jobs: number;
  readonly streams: number;
}

/** What all compression of the server shares. */
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

  /** Bytes of the largest file that is kept. */
  get cachedFile(): number {
    return this.#limits.cachedFile;
  }

  /** For an answer that is compressed piece by piece: what is to be called when it is over. Undefined: there is no room. */
  enterStream(): (() => void) | undefined {
    if (this.#streams >= this.#limits.streams) return undefined;
    this.#streams += 1;
    return () => {
      this.#streams -= 1;
    };
  }
}
