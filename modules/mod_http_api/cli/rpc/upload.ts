/**
 * Encodes files, folders and links of this machine, or the standard input, as the parts of a
 * multipart body.
 */
import { randomBytes } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { lstat, readdir, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, matchesGlob, resolve, sep } from "node:path";
import { UsageError } from "../../../../core/cli/index.ts";
import type { Upload } from "./exchange.ts";
import { binaryOf, bytesOf, findPath, shownOf } from "./file_names.ts";
import { openPlainFile, unknownKind } from "./plain_file.ts";

export interface UploadOptions {
  /** Name of the command; used in messages. */
  readonly title: string;
  readonly recursive: boolean;
  /** Also send names that begin with a dot when reading folders. */
  readonly hidden: boolean;
  /** Which links to follow: all, only those on the command line, or none. */
  readonly follow: "all" | "named" | "none";
  /** Patterns of names, or of paths below the named folder, to leave out. */
  readonly ignore: readonly string[];
  /** Name for the data from the standard input. */
  readonly stdinName: string;
  /** Whether to send the mode and the time of each entry. */
  readonly facts: boolean;
}

/**
 * One entry of the upload. Names and paths are binary texts (`file_names.ts`), because not all are
 * UTF-8.
 */
interface Entry {
  readonly name: string;
  readonly path: string;
  /** The path for messages, relative to the caller's folder. */
  readonly shown: string;
  readonly kind: "file" | "folder" | "link";
  readonly size: number;
  /** Mode and time as a query, in the form that Kubo reads; empty when they are not sent. */
  readonly facts: string;
}

/** Bytes to read from a file at a time. */
const PIECE_BYTES = 512 * 1024;

/**
 * Collects the entries of the paths; `-` is the standard input.
 *
 * @throws UsageError for a folder without `recursive` /
 */
export async function planUpload(
  paths: readonly string[],
  cwd: string,
  stdin: AsyncIterable<Uint8Array>,
  options: UploadOptions,
): Promise<Upload & { readonly size: number | undefined }> {
  const entries: (Entry | "stdin")[] = [];
  const sent = new Set<string>();
  for (const path of paths) {
    if (path === "-") entries.push("stdin");
    else {
      const found = await findPath(resolve(cwd, path));
      // A path that is named twice is sent once, as by the clients of go-ipfs and Kubo.
      if (sent.has(found)) continue;
      sent.add(found);
      await collect(entries, { path: found, name: basename(found), shown: path }, options, true);
    }
  }
  const isKnown = entries.every((entry) => entry !== "stdin");
  const size = entries.reduce((sum, entry) => sum + (entry === "stdin" ? 0 : entry.size), 0);
  const boundary = randomBytes(16).toString("hex");
  const content = bodyOf(entries, boundary, stdin, options.stdinName);
  return { type: `multipart/form-data; boundary=${boundary}`, content, size: isKnown ? size : undefined };
}

async function collect(
  entries: (Entry | "stdin")[],
  { path, name, shown }: Pick<Entry, "path" | "name" | "shown">,
  options: UploadOptions,
  isNamed = false,
): Promise<void> {
  const found = await (options.follow === "all" || (isNamed && options.follow === "named")
    ? stat(bytesOf(path), { bigint: true })
    : lstat(bytesOf(path), { bigint: true })
  ).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT" || !isNamed) throw error;
    throw new Error(`${shownOf(path)}: no such file; ${options.title} takes a file, or the standard input`);
  });
  const entry = { name, path, shown, facts: options.facts ? factsOf(found) : "" };
  if (found.isSymbolicLink()) entries.push({ ...entry, kind: "link", size: 0 });
  else if (found.isFile()) entries.push({ ...entry, kind: "file", size: Number(found.size) });
  else if (!found.isDirectory()) {
    const { message } = unknownKind(shown, { mode: Number(found.mode) });
    throw new Error(isNamed ? `${message}; send the output of a pipe or a device through the standard input` : message);
  } else {
    if (!options.recursive) throw new UsageError(`${shownOf(path)} is a folder: use --recursive (-r) to send folders`);
    if (options.follow === "all") await requireBelow(path);
    entries.push({ ...entry, kind: "folder", size: 0 });
    const children = await readdir(bytesOf(path), { encoding: "buffer" });
    for (const child of children.sort(Buffer.compare).map(binaryOf)) {
      const below = `${name}/${child}`;
      if (isLeftOut(shownOf(child), shownOf(below), options)) continue;
      await collect(entries, { path: join(path, child), name: below, shown: join(shown, shownOf(child)) }, options);
    }
  }
}

/** Mode bits as Go encodes them, which Kubo expects, and as the system does. */
const goMode = { setUid: 1 << 23, setGid: 1 << 22, sticky: 1 << 20, link: 1 << 27, folder: 2 ** 31 };
const systemMode = { setUid: 0o4000, setGid: 0o2000, sticky: 0o1000, permissions: 0o777 };
const NANOSECONDS = 1_000_000_000n;

function factsOf(found: BigIntStats): string {
  const bits = Number(found.mode);
  const moved = (["setUid", "setGid", "sticky"] as const).filter((bit) => (bits & systemMode[bit]) !== 0);
  const special = moved.reduce((sum, bit) => sum + goMode[bit], 0);
  const kind = found.isDirectory() ? goMode.folder : found.isSymbolicLink() ? goMode.link : 0;
  const mode = ((bits & systemMode.permissions) + special + kind).toString(8);
  const nanoseconds = ((found.mtimeNs % NANOSECONDS) + NANOSECONDS) % NANOSECONDS;
  const seconds = (found.mtimeNs - nanoseconds) / NANOSECONDS;
  return `?mode=0${mode}&mtime=${seconds}${nanoseconds === 0n ? "" : `&mtime-nsecs=${nanoseconds}`}`;
}

/**
 * @throws Error for a link to a folder that contains the link, since following it would never end
 */
async function requireBelow(path: string): Promise<void> {
  const real = async (each: string) => binaryOf(await realpath(bytesOf(each), { encoding: "buffer" }));
  const folder = await real(dirname(path));
  const target = await real(path);
  if (folder === target || folder.startsWith(target.endsWith(sep) ? target : `${target}${sep}`)) {
    throw new Error(`${shownOf(path)} leads back to a folder above it`);
  }
}

function isLeftOut(name: string, path: string, { hidden, ignore }: UploadOptions): boolean {
  if (name.startsWith(".") && !hidden) return true;
  const inside = path.slice(path.indexOf("/") + 1);
  return ignore.some((pattern) => {
    const bare = pattern.replace(/\/$/, "");
    return matchesGlob(name, bare) || matchesGlob(inside, bare.replace(/^\//, ""));
  });
}

const types = { file: "application/octet-stream", folder: "application/x-directory", link: "application/symlink" };

async function* bodyOf(
  entries: readonly (Entry | "stdin")[],
  boundary: string,
  stdin: AsyncIterable<Uint8Array>,
  stdinName: string,
): AsyncGenerator<Uint8Array> {
  const head = (name: string, type: string, facts = "", path?: string) => {
    const pathHeaders = path === undefined ? "" : abspathHeaders(path);
    const disposition = `form-data; name="file${facts}"; filename="${escaped(name)}"`;
    return Buffer.from(
      `--${boundary}\r\n${pathHeaders}Content-Disposition: ${disposition}\r\nContent-Type: ${type}\r\n\r\n`,
    );
  };
  const end = Buffer.from("\r\n");
  for (const entry of entries) {
    if (entry === "stdin") {
      yield head(binaryOf(Buffer.from(stdinName)), types.file);
      yield* stdin;
    } else {
      const { name, path, shown, kind, facts } = entry;
      yield head(name, types[kind], facts, kind === "file" ? path : undefined);
      if (kind === "link") yield await readlink(bytesOf(path), { encoding: "buffer" });
      if (kind === "file") yield* contentOf(path, shown);
    }
    yield end;
  }
  yield Buffer.from(`--${boundary}--\r\n`);
}

async function* contentOf(path: string, shown: string): AsyncGenerator<Uint8Array> {
  const file = await openPlainFile(bytesOf(path), shown);
  yield* file.createReadStream({ highWaterMark: PIECE_BYTES });
}

/** Writes each byte except ASCII letters, digits and a few marks as `%XX`. */
const escaped = (binary: string): string =>
  binary.replace(/[^\w\-.!~*'()]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);

/**
 * `Abspath` is ambiguous, because a path that is not plain ASCII looks like one that contains
 * escapes. Servers that know `Abspath-Encoded` read that header instead.
 */
const abspathHeaders = (path: string): string =>
  `Abspath: ${path.replace(/[^ -~]|%/g, escaped)}\r\nAbspath-Encoded: ${escaped(path)}\r\n`;
