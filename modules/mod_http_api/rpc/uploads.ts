/**
 * The files of a multipart body as a tree that is walked once, forwards, while it arrives. Nothing is kept: what the
 * walker passes over is gone.
 */
import { detach, NodeError } from "modhost/node";
import { parseMediaType } from "./media_type.ts";
import { textOf, unescapeQuery } from "./query.ts";

/** A part of a multipart body, as far as commands need it. */
export interface UploadPart {
  /** Field name, from Content-Disposition. */
  readonly name: string | undefined;
  /** File name as it was sent (backslashes and folders included). */
  readonly filename: string | undefined;
  /** By lower-case name with underscores. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Skipped when the next part is asked for. */
  readonly body: AsyncIterable<Uint8Array>;
  /** The rest of the body as UTF-8 text. */
  text(): Promise<string>;
}

interface EntryFacts {
  /** Last component; "" for a file without a name. */
  readonly name: string;
  /** From the root of the tree, without a leading slash. */
  readonly path: string;
}

export interface FileEntry extends EntryFacts {
  readonly kind: "file";
  /** Path or URL of the backing file, for `nocopy`. */
  readonly abspath: string | undefined;
  /** Permission bits. */
  readonly mode: number | undefined;
  readonly mtime: FileTime | undefined;
  /** For one reader, before the next entry is asked for. */
  readonly body: AsyncIterable<Uint8Array>;
  /** `body` for a reader that copies as it goes: a piece is gone when the next one is asked for. */
  readonly passing: AsyncIterable<Uint8Array>;
}

export interface FileTime {
  readonly seconds: number;
  readonly nanoseconds: number;
}

export interface LinkEntry extends EntryFacts {
  readonly kind: "symlink";
  readonly target: string;
}

export interface DirectoryEntry extends EntryFacts {
  readonly kind: "directory";
  /** Its children as they come, once. A directory that the body comes back to later is an entry of its own. */
  entries(): AsyncIterable<Entry>;
}

export type Entry = FileEntry | LinkEntry | DirectoryEntry;

export interface FileTree {
  /** @throws NodeError when the body is cut off or malformed, after the entries before that place */
  entries(): AsyncIterable<Entry>;
  /** The same. @throws NodeError at the end of a body without any, too */
  some(): AsyncIterable<Entry>;
  /** The same, plain files alone. @throws NodeError with that text at any other entry, too */
  plain(refusal: string): AsyncIterable<FileEntry>;
  /** The first entry, which must be a file: the argument of commands that take one. @throws NodeError */
  one(): Promise<FileEntry>;
}

export function treeOf(parts: AsyncIterable<UploadPart>): FileTree {
  const walker = new Walker(parts);
  return {
    entries: () => children(walker, "/"),
    some: () => some(walker),
    plain: (refusal) => plain(walker, refusal),
    async one() {
      const first = await children(walker, "/").next();
      if (first.done === true) throw noFile();
      if (first.value.kind !== "file") throw new NodeError("file argument was nil");
      return first.value;
    },
  };
}

const noFile = () => new NodeError("expected a file argument");

async function* some(walker: Walker): AsyncGenerator<Entry, void, undefined> {
  let any = false;
  for await (const entry of children(walker, "/")) {
    any = true;
    yield entry;
  }
  if (!any) throw noFile();
}

async function* plain(walker: Walker, refusal: string): AsyncGenerator<FileEntry, void, undefined> {
  for await (const entry of some(walker)) {
    if (entry.kind !== "file") throw new NodeError(refusal);
    yield entry;
  }
}

interface Met {
  readonly part: UploadPart;
  /** Clean, from "/". */
  readonly path: string;
}

/** The part that comes next, looked at before it is taken. */
class Walker {
  readonly #parts: AsyncIterator<UploadPart>;
  #met: Met | undefined;
  #over = false;

  constructor(parts: AsyncIterable<UploadPart>) {
    this.#parts = parts[Symbol.asyncIterator]();
  }

  async peek(): Promise<Met | undefined> {
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

/** The children of the directory at the clean path `at`. */
async function* children(walker: Walker, at: string): AsyncGenerator<Entry, void, undefined> {
  const prefix = at === "/" ? "/" : `${at}/`;
  let below: string | undefined;
  for (;;) {
    const met = await walker.peek();
    if (met === undefined || !met.path.startsWith(prefix)) return;
    // What lies below an entry that was left is skipped.
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

const directory = (walker: Walker, path: string, name: string): DirectoryEntry => ({
  kind: "directory",
  name,
  path: path.slice(1),
  entries: () => children(walker, path),
});

async function entryOf(walker: Walker, { part, path }: Met, name: string): Promise<Entry> {
  switch (typeOf(part)) {
    case "multipart/form-data":
    case "application/x-directory":
      return directory(walker, path, name);
    case "application/symlink":
      return { kind: "symlink", name, path: path.slice(1), target: await targetOf(part) };
    default: {
      const { abspath } = part.headers;
      const facts = { mode: modeOf(part), mtime: timeOf(part) };
      const body = contentOf(part);
      return { kind: "file", name, path: path.slice(1), abspath, ...facts, body, passing: passing(body) };
    }
  }
}

function typeOf({ headers }: UploadPart): string {
  const text = headers.content_type ?? "";
  if (text === "") return "";
  const { type, fault } = parseMediaType(text);
  if (fault !== undefined) throw new NodeError(fault);
  return type;
}

/** A clean absolute path: `..` does not climb above the root. */
export function pathOf(filename: string): string {
  const unescaped = unescapeQuery(filename);
  const raw = unescaped === undefined ? filename : textOf(unescaped);
  const kept: string[] = [];
  for (const component of raw.split("/")) {
    if (component === "..") kept.pop();
    else if (component !== "" && component !== ".") kept.push(component);
  }
  return `/${kept.join("/")}`;
}

async function targetOf(part: UploadPart): Promise<string> {
  try {
    return await part.text();
  } catch (error) {
    throw bodyFailure(error);
  }
}

/** A body that is cut off ends here; the next part will tell. */
async function* contentOf(part: UploadPart): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* part.body;
  } catch (error) {
    if (!isCut(error)) throw bodyFailure(error);
  }
}

/** Gives memory back piece by piece. */
async function* passing(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of body) {
    yield piece;
    detach(piece);
  }
}

function modeOf({ headers }: UploadPart): number | undefined {
  const { mode } = headers;
  return mode !== undefined && /^[0-7]{1,7}$/.test(mode) ? Number.parseInt(mode, 8) & 0o7777 : undefined;
}

function timeOf({ headers }: UploadPart): FileTime | undefined {
  const { mtime, mtime_nsecs: nanoseconds = "0" } = headers;
  if (mtime === undefined || !/^-?\d{1,15}$/.test(mtime)) return undefined;
  return { seconds: Number(mtime), nanoseconds: /^\d{1,9}$/.test(nanoseconds) ? Number(nanoseconds) : 0 };
}

/** The body ended before its closing boundary. */
function isCut(error: unknown): boolean {
  const { code, details } = error as { code?: unknown; details?: { cut?: unknown } };
  return code === "MULTIPART_INVALID" && details?.cut === true;
}

function bodyFailure(error: unknown): unknown {
  return isCut(error) ? new NodeError("multipart: NextPart: EOF", { cause: error }) : error;
}

/** A body without files. */
export const noFiles: FileTree = treeOf((async function* () {})());
