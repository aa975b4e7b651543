/** Where a keystore has its keys. */
export interface KeyHolder {
  /** In any order. */
  names(): Promise<readonly string[]>;
  get(name: string): Promise<Uint8Array | undefined>;
  /** What is at a name, for messages. */
  describe(name: string): string;
  /** @throws NodeError for a name that no key here can have */
  requireName(name: string): void;
  /** Durable when it resolves, as are all changes; false when there is one of that name. */
  add(name: string, bytes: Uint8Array): Promise<boolean>;
  /** What is at the new name is replaced if `force` is set. Without effect when there is nothing at the old one. */
  rename(was: string, now: string, force: boolean): Promise<"renamed" | "missing" | "taken">;
  /** False when there was none. */
  remove(name: string): Promise<boolean>;
}
