/** A buffer with several users, which is freed when the last one releases it. */
export class RefcountedBuffer {
  #users = 1;
  readonly #free: () => void;

  /** @param free frees the memory. The creator counts as the first user. */
  constructor(free: () => void) {
    this.#free = free;
  }

  /** Adds a user. The returned function removes it, and may be called more than once. */
  retain(): () => void {
    this.#users += 1;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.release();
    };
  }

  /** Removes the first user. */
  release(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#free();
  }
}
