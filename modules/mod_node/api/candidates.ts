/** The inputs that `add` and similar methods accept: the same forms as in the client libraries. */
import { clean } from "../content/resolver/path.ts";
import type { ModeAndTime } from "../formats/unixfs/format.ts";
import { failure } from "../util/errors.ts";
import { type ModeInput, modeOf, type TimeInput, timeOf } from "./mode_and_time.ts";

type Bytes = ArrayBufferView | ArrayBuffer;

/** The bytes of one file, whole or in pieces. Numbers are bytes. */
export type ImportContent =
  | string
  | Bytes
  | Blob
  | Iterable<number>
  | Iterable<Bytes | string>
  | AsyncIterable<Bytes | string>
  | ReadableStream<Uint8Array>;

/** A file, or a directory if there is no content. */
export interface FileCandidate {
  /**
   * Path with `/` as separator. Undefined or empty for a file without a name, or for a directory
   * that contains all further entries.
   */
  readonly path?: string | undefined;
  readonly content?: ImportContent | undefined;
  /** Stored with `preserveMode`. */
  readonly mode?: ModeInput | undefined;
  /** Stored with `preserveMtime`. */
  readonly mtime?: TimeInput | undefined;
}

export type ImportCandidate = ImportContent | FileCandidate;

export type ImportCandidates =
  | Iterable<ImportCandidate>
  | AsyncIterable<ImportCandidate>
  | ReadableStream<ImportCandidate>;

/** The bytes of one archive, or several archives. */
export type CarSources =
  | Iterable<Uint8Array>
  | AsyncIterable<Uint8Array>
  | Iterable<AsyncIterable<Uint8Array>>
  | AsyncIterable<AsyncIterable<Uint8Array>>;

/** A file or directory in the internal form. */
export interface Candidate extends ModeAndTime {
  /** Normalized: `..` cannot escape the root. */
  readonly path: string;
  /** Undefined for a directory. */
  readonly content: AsyncIterable<Uint8Array> | undefined;
}

type Stream = Iterable<unknown> | AsyncIterable<unknown>;

const refused = (reason: string) => failure("INPUT_INVALID", { reason: `Unexpected input: ${reason}` });
const single = () => refused("single item passed - if you are using ipfs.addAll, please use ipfs.add instead");
const multiple = () => refused("multiple items passed - if you are using ipfs.add, please use ipfs.addAll instead");

const isBytes = (value: unknown): value is Bytes => ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
const isText = (value: unknown): value is string => typeof value === "string" || value instanceof String;
const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
const isStream = (value: unknown): value is Stream =>
  isObject(value) && (Symbol.asyncIterator in value || Symbol.iterator in value);
const isFile = (value: unknown): value is FileCandidate =>
  isObject(value) && ((value as FileCandidate).path != null || (value as FileCandidate).content != null);

/**
 * Converts the input of `add`. @throws NodeError if the input is invalid or has more than one file
 */
export async function oneCandidate(input: unknown): Promise<Candidate> {
  if (isText(input) || isBytes(input) || input instanceof Blob) return candidateOf(input);
  if (isStream(input)) {
    const { first, all } = await peeked(input);
    if (first === undefined || typeof first === "number" || isBytes(first) || isText(first)) return candidateOf(all);
    throw multiple();
  }
  if (isFile(input)) return candidateOf(input);
  throw refused(isObject(input) ? `cannot convert "object" into ImportCandidate` : String(input));
}

/** Converts the input of `addAll`. @throws NodeError if the input is invalid or is a single file */
export async function* manyCandidates(input: unknown): AsyncGenerator<Candidate, void, undefined> {
  // A Node.js stream is one file.
  const isNodeStream = isObject(input) && (input as { _readableState?: unknown })._readableState != null;
  if (isText(input) || isBytes(input) || input instanceof Blob || isNodeStream) throw single();
  if (!isStream(input)) throw isFile(input) ? single() : refused(typeof input);
  const { first, all } = await peeked(input);
  if (first === undefined) return;
  if (typeof first === "number") throw single();
  if (isBytes(first)) yield candidateOf(all);
  else if (isText(first) || isFile(first) || isStream(first) || first instanceof Blob) {
    for await (const each of all) yield candidateOf(each);
  } else throw refused(typeof input);
}

function candidateOf(input: unknown): Candidate {
  const given = (isFile(input) && !(input instanceof Blob) ? input : { content: input }) as FileCandidate;
  const { path, content } = given;
  return {
    path: clean((path ?? "").split("/")).join("/"),
    content: content == null ? undefined : piecesIn(content),
    mode: modeOf(given.mode),
    mtime: timeOf(given.mtime),
  };
}

async function* piecesIn(content: unknown): AsyncGenerator<Uint8Array, void, undefined> {
  if (isText(content) || isBytes(content)) yield pieceOf(content);
  else if (content instanceof Blob) yield* content.stream();
  else if (isStream(content)) {
    const numbers: number[] = [];
    for await (const piece of content) {
      if (typeof piece === "number") numbers.push(piece);
      else yield pieceOf(piece);
    }
    if (numbers.length > 0) yield Uint8Array.from(numbers);
  } else throw refused(String(content));
}

function pieceOf(piece: unknown): Uint8Array {
  if (piece instanceof Uint8Array) return piece;
  if (ArrayBuffer.isView(piece)) return new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength);
  if (piece instanceof ArrayBuffer) return new Uint8Array(piece);
  if (Array.isArray(piece)) return Uint8Array.from(piece);
  if (isText(piece)) return new TextEncoder().encode(String(piece));
  throw refused(String(piece));
}

/** Returns the first value, or undefined if there is none. `all` still yields that value. */
async function peeked(source: Stream): Promise<{ first: unknown; all: AsyncIterable<unknown> }> {
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  const first = await iterator.next();
  async function* all() {
    try {
      for (let next = first; next.done !== true; next = await iterator.next()) yield next.value;
    } finally {
      await iterator.return?.();
    }
  }
  return { first: first.done === true ? undefined : first.value, all: all() };
}
