/** A reader of external input, with hostile inputs of any size. */
export interface InputTarget {
  readonly name: string;
  /** Maximum size of an input in bytes. */
  readonly most: number;
  /** Names of the shapes of its inputs. */
  readonly shapes: readonly string[];
  /** The reason why it may block longer than others. */
  readonly atOnce: string | undefined;
  /** Makes an input of that shape and about that many bytes. */
  make(shape: string, size: number): unknown;
  /** Reads an input. An error means that the input is rejected. */
  read(input: unknown): unknown;
  /** Makes an input of that shape and size. Returns a function that reads it. */
  prepare(shape: string, size: number): () => unknown;
}

export type Make<T> = (size: number) => T;

export function target<T>(
  name: string,
  most: number,
  inputs: Readonly<Record<string, Make<T>>>,
  read: (input: T) => unknown,
  atOnce?: string,
): InputTarget {
  const make = (shape: string, size: number) => (inputs[shape] as Make<T>)(size);
  return {
    name,
    most,
    shapes: Object.keys(inputs),
    atOnce,
    make,
    read: (input) => read(input as T),
    prepare(shape, size) {
      const input = make(shape, size);
      return () => read(input);
    },
  };
}

export const KIB = 1024;
export const MIB = 1024 * 1024;
/** The largest block that is stored or accepted from a peer. */
export const BLOCK = 2 * MIB;
/** Maximum size of the head of a request. */
export const HEAD = 16 * KIB;

export const utf8 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));

/** Repeats a piece up to a size. */
export const repeated = (piece: string, size: number): string =>
  piece.repeat(Math.max(1, Math.floor(size / piece.length)));

/** Returns as many numbered pieces as fit. */
export function numbered(size: number, make: (at: number) => string, between = ","): string {
  const parts: string[] = [];
  for (let length = 0; length < size; length += (parts.at(-1) as string).length + between.length)
    parts.push(make(parts.length));
  return parts.join(between);
}
