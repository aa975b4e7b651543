/**
 * Presents the files of a multipart body as a tree that is walked once, in order, while the body
 * arrives. Nothing is buffered: an entry that the caller skips cannot be read later.
 */
import { byteText, failure, type ModeAndTime } from "modhost/node";
import { parseMediaType } from "./media_type.ts";
import { textOf, unescapeQuery } from "./query_string.ts";

/** One part of a multipart body. */
export interface UploadPart {
  /** Field name of the part, from Content-Disposition. */
  readonly name: string | undefined;
  /** File name as sent, including backslashes and folders. */
  readonly filename: string | undefined;
  /** Headers of the part by name, in lower case with underscores. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Skipped if not read before the next part is requested. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Like `body`, but each chunk becomes invalid when the next one is requested. */
  readonly passing: AsyncIterable<Uint8Array>;
}

interface EntryFacts extends ModeAndTime {
  /** Last path component; "" for a file without a name. */
  readonly name: string;
  /** Path from the root of the tree, without a leading slash. */
  readonly path: string;
}

export interface FileEntry extends EntryFacts {
  readonly kind: "file";
  /** Path or URL of the backing file, for `nocopy`. */
  readonly abspath: string | undefined;
  /** May be read once, before the next entry is requested. */
  readonly body: AsyncIterable<Uint8Array>;
  /**
   * Like `body`, but each chunk becomes invalid when the next one is requested. For readers that
   * copy.
   */
  readonly passing: AsyncIterable<Uint8Array>;
}

export interface LinkEntry extends EntryFacts {
  readonly kind: "symlink";
  /** A name in the form that `byteText` writes. */
  readonly target: string;
}

export interface DirectoryEntry extends EntryFacts {
  readonly kind: "directory";
  /**
   * Yields the children once, in order of arrival. If the body returns to a directory later, it
   * appears as another entry.
   */
  entries(): AsyncIterable<Entry>;
}

export type Entry = FileEntry | LinkEntry | DirectoryEntry;

export interface FileTree {
  /**
   * @throws NodeError if the body is truncated or malformed, after yielding the entries before that
   * point
   */
  entries(): AsyncIterable<Entry>;
  /** Like `entries`. @throws NodeError also if there are no entries */
  some(): AsyncIterable<Entry>;
  /**
   * Like `some`, or `entries` with `orNone`, for files only.
   *
   * @throws NodeError with the message `refusal` at any other kind of entry /
   */
  plain(refusal: string, how?: { readonly orNone: boolean }): AsyncIterable<FileEntry>;
  /**
   * Resolves to the first entry, for commands that take a single file.
   *
   * @throws NodeError if it is missing or not a file /
   */
  one(): Promise<FileEntry>;
}

export function treeOf(parts: AsyncIterable<UploadPart>): FileTree {
  const walker = new Walker(parts);
  return {
    entries: () => children(walker, "/"),
    some: () => some(walker),
    plain: (refusal, { orNone = false } = { orNone: false }) =>
      plain(orNone ? children(walker, "/") : some(walker), refusal),
    async one() {
      const first = await children(walker, "/").next();
      if (first.done === true) throw noFile();
      if (first.value.kind !== "file") throw failure("INPUT_INVALID", { reason: "file argument was nil" });
      return first.value;
    },
  };
}

const noFile = () => failure("FILE_ARGUMENT_MISSING");

async function* some(walker: Walker): AsyncGenerator<Entry, void, undefined> {
  let any = false;
  for await (const entry of children(walker, "/")) {
    any = true;
    yield entry;
  }
  if (!any) throw noFile();
}

async function* plain(entries: AsyncIterable<Entry>, refusal: string): AsyncGenerator<FileEntry, void, undefined> {
  for await (const entry of entries) {
    if (entry.kind !== "file") throw failure("INPUT_INVALID", { reason: refusal });
    yield entry;
  }
}

interface PendingPart {
  readonly part: UploadPart;
  /** The path of the part, absolute and normalized. */
  readonly path: string;
}

/** Iterates over the parts with one part of lookahead. */
class Walker {
  readonly #parts: AsyncIterator<UploadPart>;
  #met: PendingPart | undefined;
  #over = false;

  constructor(parts: AsyncIterable<UploadPart>) {
    this.#parts = parts[Symbol.asyncIterator]();
  }

  async peek(): Promise<PendingPart | undefined> {
    if (this.#met !== undefined || this.#over) return this.#met;
    try {
      const next = await this.#parts.next();
      if (next.done === true) this.#over = true;
      else this.#met = { part: next.value, path: pathOf(next.value.filename ?? "") };
    } catch (error) {
      this.#over = true;
      throw bodyFailure(error);
    }
    return this.#met;
  }

  take(): void {
    this.#met = undefined;
  }
}

/** Yields the children of the directory at the normalized path `at`. */
async function* children(walker: Walker, at: string): AsyncGenerator<Entry, void, undefined> {
  const prefix = at === "/" ? "/" : `${at}/`;
  let below: string | undefined;
  for (;;) {
    const met = await walker.peek();
    if (met === undefined || !met.path.startsWith(prefix)) return;
    // The caller did not descend into the previous entry: skip what lies below it.
    if (below !== undefined && met.path.startsWith(below)) {
      walker.take();
      continue;
    }
    const rest = met.path.slice(prefix.length);
    const slash = rest.indexOf("/");
    const name = slash < 0 ? rest : rest.slice(0, slash);
    below = name === "" ? undefined : `${prefix}${name}/`;
    if (slash >= 0) {
      yield directory(walker, `${prefix}${name}`, name);
      continue;
    }
    walker.take();
    yield await entryOf(walker, met, name);
  }
}

const directory = (walker: Walker, path: string, name: string, facts: ModeAndTime = {}): DirectoryEntry => ({
  kind: "directory",
  name,
  path: path.slice(1),
  ...facts,
  entries: () => children(walker, path),
});

async function entryOf(walker: Walker, { part, path }: PendingPart, name: string): Promise<Entry> {
  const facts = factsOf(part);
  switch (typeOf(part)) {
    case "multipart/form-data":
    case "application/x-directory":
      return directory(walker, path, name, facts);
    case "application/symlink":
      return { kind: "symlink", name, path: path.slice(1), ...facts, target: await targetOf(part) };
    default:
      return new UploadedFile(part, name, path.slice(1), facts);
  }
}

/** There may be very many files, so streams are only created when they are read. */
class UploadedFile implements FileEntry {
  readonly kind = "file";
  readonly name: string;
  readonly path: string;
  readonly abspath: string | undefined;
  readonly mode: number | undefined;
  readonly mtime: ModeAndTime["mtime"];
  readonly #part: UploadPart;

  constructor(part: UploadPart, name: string, path: string, { mode, mtime }: ModeAndTime) {
    this.name = name;
    this.path = path;
    this.abspath = abspathOf(part);
    this.mode = mode;
    this.mtime = mtime;
    this.#part = part;
  }

  get body(): AsyncIterable<Uint8Array> {
    return contentOf(this.#part.body);
  }

  get passing(): AsyncIterable<Uint8Array> {
    return contentOf(this.#part.passing);
  }
}

function typeOf({ headers }: UploadPart): string {
  const text = headers.content_type ?? "";
  if (text === "") return "";
  const { type, fault } = parseMediaType(text);
  if (fault !== undefined) throw failure("INPUT_INVALID", { reason: fault });
  return type;
}

/** Returns a normalized absolute path; `..` cannot escape the root. */
export function pathOf(filename: string): string {
  const unescaped = unescapeQuery(filename);
  const raw = unescaped === undefined ? filename : textOf(unescaped);
  const components: string[] = [];
  for (const component of raw.split("/")) {
    if (component === "..") components.pop();
    else if (component !== "" && component !== ".") components.push(component);
  }
  return `/${components.join("/")}`;
}

/**
 * Maximum bytes of the target of a symlink, which is read into memory. No system allows targets of
 * that length.
 */
const MAX_TARGET = 64 * 1024;

async function targetOf(part: UploadPart): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const piece of part.body) {
      length += piece.length;
      if (length > MAX_TARGET)
        throw failure("INPUT_TOO_LARGE", { reason: `the target of a symlink has more than ${MAX_TARGET} bytes` });
      pieces.push(piece);
    }
  } catch (error) {
    throw bodyFailure(error);
  }
  return byteText(Buffer.concat(pieces));
}

/**
 * If the body is truncated, the content ends silently. Reading the next part then raises the error.
 */
async function* contentOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* bytes;
  } catch (error) {
    if (!isCut(error)) throw bodyFailure(error);
  }
}

const MAX_MODE = 2 ** 32 - 1;
const NANOSECONDS = 1_000_000_000;
const nothing: ModeAndTime = {};

/**
 * Clients send mode and time in the name of the part, as a query:
 * `file?mode=0644&mtime=1630937926&mtime-nsecs=42`. As in Kubo, a query without `mtime`
 * means 1970, and an `mtime` that is empty or not a number means no time.
 */
function factsOf({ name = "" }: UploadPart): ModeAndTime {
  const at = name.indexOf("?");
  if (at < 0) return nothing;
  const query = new URLSearchParams(name.slice(at + 1));
  const mode = query.get("mode");
  const goMode = mode !== null && /^[0-7]+$/.test(mode) ? Number.parseInt(mode, 8) : 0;
  return { mode: goMode > MAX_MODE ? undefined : goMode || undefined, mtime: timeOf(query) };
}

function timeOf(query: URLSearchParams): ModeAndTime["mtime"] {
  const seconds = query.get("mtime") ?? "0";
  if (!/^-?\d{1,15}$/.test(seconds)) return undefined;
  const given = query.get("mtime-nsecs") ?? "";
  const nanoseconds = /^-?\d{1,15}$/.test(given) ? Number(given) : 0;
  const carried = Math.floor(nanoseconds / NANOSECONDS);
  return { seconds: Number(seconds) + carried, nanoseconds: nanoseconds - carried * NANOSECONDS };
}

/** Decodes `Abspath-Encoded` if a client sends it, because a header can only carry ASCII. */
function abspathOf({ headers: { abspath, abspath_encoded: encoded } }: UploadPart): string | undefined {
  const unescaped = encoded === undefined ? undefined : unescapeQuery(encoded);
  return unescaped === undefined ? abspath : textOf(unescaped);
}

/** Returns whether the body ended before its closing boundary. */
function isCut(error: unknown): boolean {
  const { code, details } = error as { code?: unknown; details?: { cut?: unknown } };
  return code === "MULTIPART_INVALID" && details?.cut === true;
}

function bodyFailure(error: unknown): unknown {
  return isCut(error) ? failure("INPUT_INVALID", { reason: "multipart: NextPart: EOF" }, error) : error;
}

/** A body without files. */
export const noFiles: FileTree = treeOf((async function* () {})());
