/** Memory with several users, given back when the last one is done. */
export class RefcountedBuffer {
  #users = 1;
  readonly #free: () => void;

  /** @param free gives the memory back. The creator is its first user. */
  constructor(free: () => void) {
    this.#free = free;
  }

  /** Adds a user. The function that is returned removes it, and may be called more than once. */
  retain(): () => void {
    this.#users += 1;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.release();
    };
  }

  /** The first user is done. */
  release(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#free();
  }
}
