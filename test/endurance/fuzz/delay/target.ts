/** Something that reads what comes from outside, and hostile inputs for it that grow. */
export interface Target {
  readonly name: string;
  /** Bytes of the largest input that can come. */
  readonly most: number;
  /** Names of the shapes of its inputs. */
  readonly shapes: readonly string[];
  /** Why it may take longer than others in one piece. */
  readonly atOnce: string | undefined;
  /** An input of that shape and about that many bytes. */
  make(shape: string, size: number): unknown;
  /** What it throws says that the input is refused. */
  read(input: unknown): unknown;
  /** Reads an input of that shape and about that many bytes, which is made here already. */
  prepare(shape: string, size: number): () => unknown;
}

export type Make<T> = (size: number) => T;

export function target<T>(
  name: string,
  most: number,
  inputs: Readonly<Record<string, Make<T>>>,
  read: (input: T) => unknown,
  atOnce?: string,
): Target {
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
/** The largest block that is stored or taken from a peer. */
export const BLOCK = 2 * MIB;
/** The head of a request. */
export const HEAD = 16 * KIB;

export const utf8 = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));

/** Pieces over and over, up to a size. */
export const repeated = (piece: string, size: number): string =>
  piece.repeat(Math.max(1, Math.floor(size / piece.length)));

/** As many as fit, numbered. */
export function numbered(size: number, make: (at: number) => string, between = ","): string {
  const parts: string[] = [];
  for (let length = 0; length < size; length += (parts.at(-1) as string).length + between.length)
    parts.push(make(parts.length));
  return parts.join(between);
}
