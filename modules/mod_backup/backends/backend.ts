/** Where a repository is kept: objects by name, of some megabytes at most. */
export interface Backend {
  /** For people. */
  readonly name: string;
  /** Undefined when there is no such object. */
  read(name: string, signal?: AbortSignal): Promise<Buffer | undefined>;
  /** There is all of it when it resolves, or else what was there before; durable after `sync`. */
  write(name: string, bytes: Uint8Array, signal?: AbortSignal): Promise<void>;
  /** The same, but false when there is an object of that name already. */
  create(name: string, bytes: Uint8Array): Promise<boolean>;
  /** Resolves when all that was written is durable. */
  sync(): Promise<void>;
  remove(name: string): Promise<void>;
  /** Names that begin with a prefix, which ends in a slash; in any order. */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<string>;
  /** Removes what interrupted writes have left. Nobody writes meanwhile. */
  tidy(): Promise<void>;
}
