/** Stores the keys of a keystore. */
export interface KeyHolder {
  /** Resolves with the names of all keys, in any order. */
  names(): Promise<readonly string[]>;
  get(name: string): Promise<Uint8Array | undefined>;
  /** Describes where the key of a name is stored, for error messages. */
  describe(name: string): string;
  /** @throws NodeError for a name that no key in this store can have */
  requireName(name: string): void;
  /**
   * Adds a key. Like every change, it is durable when the promise resolves. Resolves with false
   * when the name is taken.
   */
  add(name: string, bytes: Uint8Array): Promise<boolean>;
  /**
   * Renames a key. With `force`, a key of the new name is replaced. Changes nothing when no key has
   * the old name.
   */
  rename(was: string, now: string, force: boolean): Promise<"renamed" | "missing" | "taken">;
  /** Removes a key. Resolves with false when the name does not exist. */
  remove(name: string): Promise<boolean>;
}
