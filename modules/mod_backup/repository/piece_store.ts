/** Stores each piece once. Large pieces get their own object; small pieces are packed together. */
import type { Entry, Piece } from "./format.ts";
import type { Repository } from "./repository.ts";

/** Pieces up to this many bytes are packed together. */
const MAX_SMALL = 512 * 1024;
const MAX_PACK = 4 * 1024 * 1024;
/** Maximum number of objects being written at a time. It also bounds the memory for them. */
const MAX_WRITING = 4;

/** The address of a piece. The object of a packed piece is filled in when the pack is written. */
type PieceAddress = [hash: string, length: number, object?: string, at?: number];

export class PieceStore {
  readonly #repository: Repository;
  readonly #signal: AbortSignal;
  /** Hashes of the objects that exist. */
  readonly #objects: Set<string>;
  readonly #pieces = new Map<string, PieceAddress>();
  readonly #writing = new Set<Promise<void>>();
  #failure: Error | undefined;
  #pack: { address: PieceAddress; content: Uint8Array }[] = [];
  #packBytes = 0;
  #added = 0;

  private constructor(repository: Repository, objects: Set<string>, signal: AbortSignal) {
    this.#repository = repository;
    this.#objects = objects;
    this.#signal = signal;
  }

  /**
   * Opens the store. The pieces of `entries`, which are those of the previous snapshot, are not
   * stored again.
   */
  static async open(repository: Repository, entries: Iterable<Entry>, signal: AbortSignal): Promise<PieceStore> {
    const store = new PieceStore(repository, await repository.objects(signal), signal);
    for (const { pieces } of entries) {
      for (const piece of pieces) if (store.hasAll([piece])) store.#pieces.set(piece[0], [...piece]);
    }
    return store;
  }

  /** Bytes of the objects that were written. */
  get added(): number {
    return this.#added;
  }

  hasAll(pieces: readonly Piece[]): boolean {
    return pieces.every(([hash, , object = hash]) => this.#objects.has(object));
  }

  isPiece([hash, length]: Piece, content: Uint8Array): boolean {
    return content.length === length && this.#repository.seal.hash(content) === hash;
  }

  /**
   * Returns the address of the piece, which is final once `flush` has resolved. Waits while many
   * objects are being written.
   */
  async put(content: Uint8Array): Promise<Piece> {
    this.#signal.throwIfAborted();
    const hash = this.#repository.seal.hash(content);
    const known = this.#pieces.get(hash);
    if (known !== undefined) return known;
    const address: PieceAddress = [hash, content.length];
    this.#pieces.set(hash, address);
    if (this.#objects.has(hash)) return address;
    if (content.length > MAX_SMALL) {
      await this.#write(hash, content);
      return address;
    }
    this.#pack.push({ address, content });
    this.#packBytes += content.length;
    if (this.#packBytes >= MAX_PACK) await this.flush();
    return address;
  }

  /** Resolves when every piece has its final address. */
  async flush(): Promise<void> {
    const pack = this.#pack;
    this.#pack = [];
    this.#packBytes = 0;
    if (pack.length === 0) return;
    const whole = Buffer.concat(pack.map(({ content }) => content));
    const hash = this.#repository.seal.hash(whole);
    let at = 0;
    for (const { address, content } of pack) {
      if (pack.length > 1) address.push(hash, at);
      at += content.length;
    }
    await this.#write(hash, whole);
  }

  /**
   * Resolves when all objects are written and every piece has its final address. They are durable
   * after `sync` of the backend.
   */
  async end(): Promise<void> {
    await this.flush();
    await Promise.all(this.#writing);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Resolves when no write is pending, whether the writes succeeded or failed. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  async #write(hash: string, content: Uint8Array): Promise<void> {
    if (this.#objects.has(hash)) return;
    this.#objects.add(hash);
    while (this.#writing.size >= MAX_WRITING) await Promise.race(this.#writing);
    if (this.#failure !== undefined) throw this.#failure;
    const written = this.#repository
      .writeObject(hash, content, this.#signal)
      .then(() => {
        this.#added += content.length;
      })
      .catch((error: Error) => {
        this.#failure ??= error;
      })
      .finally(() => this.#writing.delete(written));
    this.#writing.add(written);
  }
}
