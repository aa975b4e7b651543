/**
 * Content of peers that store nothing: pieces in memory, each of which is hashed by its sender and
 * by its receiver.
 */
import { createHash } from "node:crypto";
import { keystream } from "#test/support/content.ts";

/** Contents by name, in pieces of the length of a chunk. */
export class PlainContents {
  readonly #contents = new Map<string, readonly Buffer[]>();

  /** @returns the name */
  add(size: number, chunk: number, seed: number): string {
    const whole = Buffer.concat([...keystream(size, seed)]);
    const pieces = Array.from({ length: Math.ceil(size / chunk) }, (_, at) =>
      whole.subarray(at * chunk, (at + 1) * chunk),
    );
    for (const piece of pieces) createHash("sha256").update(piece).digest();
    const name = `${seed}/${chunk}`;
    this.#contents.set(name, pieces);
    return name;
  }

  get(name: string): readonly Buffer[] | undefined {
    return this.#contents.get(name);
  }
}

/** Content that arrives and is hashed piece by piece. */
export class Arrival {
  readonly #chunk: number;
  readonly #all = Promise.withResolvers<null>();
  #left: number;
  #buffered = 0;
  #hash = createHash("sha256");

  constructor(name: string, size: number) {
    this.#chunk = Number(name.split("/")[1]);
    this.#left = size;
  }

  /** Resolves once all bytes have arrived. */
  get all(): Promise<null> {
    return this.#all.promise;
  }

  take(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const part = bytes.subarray(at, at + this.#chunk - this.#buffered);
      this.#hash.update(part);
      at += part.length;
      this.#buffered += part.length;
      this.#left -= part.length;
      if (this.#buffered < this.#chunk && this.#left > 0) continue;
      this.#hash.digest();
      this.#hash = createHash("sha256");
      this.#buffered = 0;
    }
    if (this.#left === 0) this.#all.resolve(null);
  }
}
