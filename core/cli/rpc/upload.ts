/** Files, folders and links of this machine, or the standard input, as the parts of a multipart body. */
import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, matchesGlob, resolve, sep } from "node:path";
import { UsageError } from "../command.ts";
import type { Upload } from "./exchange.ts";

export interface UploadOptions {
  /** What takes the files, for messages. */
  readonly title: string;
  readonly recursive: boolean;
  /** Take names that begin with a dot, too, where folders are read. */
  readonly hidden: boolean;
  /** Of which links what they lead to is sent: of all, of those on the command line, or of none. */
  readonly follow: "all" | "named" | "none";
  /** Patterns of names, or of paths below what was named, that are left out. */
  readonly ignore: readonly string[];
  /** Name of what comes from the standard input. */
  readonly stdinName: string;
}

/** One entry as it is sent. */
interface Entry {
  readonly name: string;
  readonly path: string;
  readonly kind: "file" | "folder" | "link";
  readonly size: number;
}

/** Bytes read from a file at a time. */
const PIECE_BYTES = 512 * 1024;

/** What the paths stand for; `-` is the standard input. @throws UsageError for a folder without `recursive` */
export async function planUpload(
  paths: readonly string[],
  cwd: string,
  stdin: AsyncIterable<Uint8Array>,
  options: UploadOptions,
): Promise<Upload & { readonly size: number | undefined }> {
  const entries: (Entry | "stdin")[] = [];
  for (const path of paths) {
    if (path === "-") entries.push("stdin");
    else await collect(entries, resolve(cwd, path), basename(resolve(cwd, path)), options, true);
  }
  const isKnown = entries.every((entry) => entry !== "stdin");
  const size = entries.reduce((sum, entry) => sum + (entry === "stdin" ? 0 : entry.size), 0);
  const boundary = randomBytes(16).toString("hex");
  const content = bodyOf(entries, boundary, stdin, options.stdinName);
  return { type: `multipart/form-data; boundary=${boundary}`, content, size: isKnown ? size : undefined };
}

async function collect(
  entries: (Entry | "stdin")[],
  path: string,
  name: string,
  options: UploadOptions,
  isNamed = false,
): Promise<void> {
  const found = await (options.follow === "all" || (isNamed && options.follow === "named")
    ? stat(path)
    : lstat(path)
  ).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT" || !isNamed) throw error;
    throw new Error(`${path}: there is no such file; ${options.title} takes a file, or the standard input`);
  });
  if (found.isSymbolicLink()) entries.push({ name, path, kind: "link", size: 0 });
  else if (!found.isDirectory()) entries.push({ name, path, kind: "file", size: found.size });
  else {
    if (!options.recursive) throw new UsageError(`${path} is a folder: use --recursive (-r) to send folders`);
    if (options.follow === "all") await requireBelow(path);
    entries.push({ name, path, kind: "folder", size: 0 });
    for (const child of (await readdir(path)).sort()) {
      const below = `${name}/${child}`;
      if (isLeftOut(child, below, options)) continue;
      await collect(entries, join(path, child), below, options);
    }
  }
}

/** @throws Error for a link to a folder that it is in, which would have no end */
async function requireBelow(path: string): Promise<void> {
  const [place, target] = [await realpath(dirname(path)), await realpath(path)];
  if (place === target || place.startsWith(target.endsWith(sep) ? target : `${target}${sep}`)) {
    throw new Error(`${path} leads back to a folder above it`);
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
  const head = (name: string, type: string, path?: string) => {
    const place = path === undefined ? "" : `Abspath: ${encodeURI(path)}\r\n`;
    const disposition = `form-data; name="file"; filename="${encodeURIComponent(name)}"`;
    return Buffer.from(`--${boundary}\r\n${place}Content-Disposition: ${disposition}\r\nContent-Type: ${type}\r\n\r\n`);
  };
  const end = Buffer.from("\r\n");
  for (const entry of entries) {
    if (entry === "stdin") {
      yield head(stdinName, types.file);
      yield* stdin;
    } else {
      const { name, path, kind } = entry;
      yield head(name, types[kind], kind === "file" ? path : undefined);
      if (kind === "link") yield Buffer.from(await readlink(path));
      if (kind === "file") yield* createReadStream(path, { highWaterMark: PIECE_BYTES });
    }
    yield end;
  }
  yield Buffer.from(`--${boundary}--\r\n`);
}
