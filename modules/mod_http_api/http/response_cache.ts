/**
 * Caches long list responses: a list that cannot have changed since is sent again without being
 * built again.
 */

/** Maximum bytes of the whole cache, and of one response. */
const MAX_BYTES = 8 * 2 ** 20;
const MAX_RESPONSE_BYTES = MAX_BYTES / 2;

interface CachedResponse {
  readonly pieces: readonly Buffer[];
  readonly size: number;
}

/**
 * Bodies of responses by name. A name identifies everything that the list depends on. The least
 * recently used body is dropped first.
 */
export class ResponseCache {
  #size = 0;
  /** From the least to the most recently used. */
  readonly #responses = new Map<string, CachedResponse>();

  find(name: string): readonly Buffer[] | undefined {
    const found = this.#responses.get(name);
    if (found === undefined) return undefined;
    this.#responses.delete(name);
    this.#responses.set(name, found);
    return found.pieces;
  }

  /**
   * Yields the pieces while they arrive, and caches them at the end, unless they are too long or
   * `isWanted` returns false.
   */
  async *storing(name: string, texts: AsyncIterable<string>, isWanted: () => boolean): AsyncGenerator<Buffer, void> {
    let pieces: Buffer[] = [];
    let size = 0;
    for await (const text of texts) {
      const piece = Buffer.from(text);
      size += piece.length;
      if (size <= MAX_RESPONSE_BYTES) pieces.push(piece);
      else pieces = [];
      yield piece;
    }
    if (size <= MAX_RESPONSE_BYTES && isWanted()) this.#store(name, { pieces, size });
  }

  #store(name: string, response: CachedResponse): void {
    this.#drop(name);
    this.#responses.set(name, response);
    this.#size += response.size;
    for (const oldest of this.#responses.keys()) {
      if (this.#size <= MAX_BYTES) return;
      this.#drop(oldest);
    }
  }

  #drop(name: string): void {
    this.#size -= this.#responses.get(name)?.size ?? 0;
    this.#responses.delete(name);
  }
}
