/**
 * Frees the memory of request bodies that a module has read. Without it V8 starts a full garbage
 * collection whenever some 24 MiB were allocated outside of a small heap: most of the CPU time of a
 * large upload. A collection of young objects frees nearly all of that memory, and takes less than
 * a millisecond. The memory cannot be used again, because the module may keep the pieces.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Bytes that are read between two collections. */
const STEP_BYTES = 4 * 2 ** 20;

type Collect = (options: { readonly type: "minor" }) => void;

let collect: Collect | undefined;

/** Returns V8's function, which it gives to new contexts as long as the flag is set. */
function collector(): Collect {
  setFlagsFromString("--expose-gc");
  try {
    return runInNewContext("gc") as Collect;
  } finally {
    setFlagsFromString("--no-expose-gc");
  }
}

export class ReadGarbage {
  #bytes = 0;

  /** Counts bytes that were read from a connection, whose memory is not used again. */
  add(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < STEP_BYTES) return;
    this.#bytes = 0;
    collect ??= collector();
    collect({ type: "minor" });
  }
}
