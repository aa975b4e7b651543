/** Lists that are asked for again: one that cannot have changed is sent as it was, without being made anew. */

/** Of all that is kept, and of one answer. */
const MAX_BYTES = 8 * 2 ** 20;
const MAX_ANSWER_BYTES = MAX_BYTES / 2;

interface Answer {
  readonly pieces: readonly Buffer[];
  readonly size: number;
}

/** The bodies of answers, by names that say all on which they depend; the ones that were not used for longest go first. */
export class KeptAnswers {
  #size = 0;
  /** From the least to the most recently used. */
  readonly #answers = new Map<string, Answer>();

  find(name: string): readonly Buffer[] | undefined {
    const found = this.#answers.get(name);
    if (found === undefined) return undefined;
    this.#answers.delete(name);
    this.#answers.set(name, found);
    return found.pieces;
  }

  /** The pieces as they come, to be kept when they are at their end; what is too long is not, nor what `isWanted` refuses then. */
  async *keeping(name: string, texts: AsyncIterable<string>, isWanted: () => boolean): AsyncGenerator<Buffer, void> {
    let pieces: Buffer[] = [];
    let size = 0;
    for await (const text of texts) {
      const piece = Buffer.from(text);
      size += piece.length;
      if (size <= MAX_ANSWER_BYTES) pieces.push(piece);
      else pieces = [];
      yield piece;
    }
    if (size <= MAX_ANSWER_BYTES && isWanted()) this.#keep(name, { pieces, size });
  }

  #keep(name: string, answer: Answer): void {
    this.#drop(name);
    this.#answers.set(name, answer);
    this.#size += answer.size;
    for (const oldest of this.#answers.keys()) {
      if (this.#size <= MAX_BYTES) return;
      this.#drop(oldest);
    }
  }

  #drop(name: string): void {
    this.#size -= this.#answers.get(name)?.size ?? 0;
    this.#answers.delete(name);
  }
}
