/** Presenters that save the response in files. */
import { createWriteStream, type PathLike } from "node:fs";
import { lstat, mkdir, rm, symlink } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { pipeline } from "node:stream/promises";

import { binaryOf, bytesOf, shownOf } from "./file_names.ts";
import { isFlagSet } from "./parse.ts";
import { unknownKind } from "./plain_file.ts";
import { lengthOf, type Presenter, print } from "./presenters.ts";
import { checkEnd } from "./session.ts";
import { readTar, type TarEntry, TarError } from "./tar.ts";

/** `get` saves files and folders or, with `archive` or `compress`, a single file. */
export const get: Presenter = async (session, call) => {
  const { cwd } = session.context;
  const source = call.arguments[0]?.replace(/\/+$/, "").split("/").at(-1) ?? "download";
  const named = call.options.get("output")?.[0];
  const wanted = resolve(cwd, named ?? source);
  const archive = isFlagSet(call, "archive");
  const compress = isFlagSet(call, "compress");
  const response = await session.send(call);
  const progress = session.progress(lengthOf(response));
  let done = 0;
  const counted = async function* () {
    for await (const piece of response.body) {
      done += piece.length;
      progress?.show(done);
      yield piece;
    }
  };
  const inside = await isFolder(wanted);
  const shown = (path: string) => relative(cwd, path);
  if (archive || compress) {
    const ending = `${archive ? ".tar" : ""}${compress ? ".gz" : ""}`;
    const path = inside ? join(wanted, source) : wanted;
    const file = path.endsWith(ending) ? path : `${path}${ending}`;
    await session.write(`Saving archive to ${shown(file)}\n`);
    await clear(file);
    await pipeline(counted, createWriteStream(file));
  } else {
    await session.write(`Saving file(s) to ${named ?? source}\n`);
    await mkdir(dirname(wanted), { recursive: true });
    const targets = { folder: binaryOf(wanted), other: binaryOf(inside ? join(wanted, source) : wanted) };
    await unpack(readTar(counted()), targets).catch((error: unknown) => {
      // If the server broke the archive off, it reports why.
      if (error instanceof TarError) checkEnd(response);
      throw error;
    });
  }
  progress?.clear();
  checkEnd(response);
};

/**
 * Permission bits that are applied: who may read, write and run the file. The setuid, setgid and
 * sticky bits are dropped.
 */
const MAX_MODE = 0o777;

/** Kinds of entries that are saved. */
const written: ReadonlySet<string> = new Set(["directory", "symlink", "file"]);

/**
 * Writes the entries of an archive. The first one is the target itself: the path `folder` if it is
 * a folder, the path `other` otherwise. All paths are binary texts (`file_names.ts`). Nothing is
 * written outside of the target: names with `..` are refused, and so are links, whether they come
 * from the archive or exist on the disk.
 */
async function unpack(
  entries: AsyncIterable<TarEntry>,
  { folder, other }: { readonly folder: string; readonly other: string },
): Promise<void> {
  /** Folders that were created or found, and are not links. */
  const folders = new Set<string>();
  let target: string | undefined;
  for await (const { name, type, linkname, mode, body } of entries) {
    target ??= type === "directory" ? folder : other;
    const below = name.replace(/\/$/, "").split("/").slice(1);
    const path = join(target, ...below);
    if (below.some((part) => part === "" || part === "." || part === "..")) {
      throw new Error(`The archive has an entry outside of the requested folder: ${shownOf(name)}`);
    }
    if (!written.has(type))
      throw new Error(
        `The archive has an entry that is neither a file, a folder nor a link: ${shownOf(name)} (${type})`,
      );
    if (path !== target) await makeFolder(dirname(path));
    // The caller may have named the target folder by a link; that link stays.
    if (path !== target || type !== "directory") await clear(bytesOf(path));
    if (type === "directory") await makeFolder(path);
    else if (type === "symlink") await symlink(bytesOf(linkname), bytesOf(path));
    else await pipeline(body, createWriteStream(bytesOf(path), { mode: mode & MAX_MODE }));
  }

  /**
   * Creates the folder and its parents, up to `target`.
   *
   * @throws Error if one of them is a link
   */
  async function makeFolder(path: string): Promise<void> {
    if (folders.has(path)) return;
    if (path !== target) await makeFolder(dirname(path));
    if ((await kindOf(bytesOf(path)))?.isSymbolicLink() === true) {
      throw new Error(
        `Nothing is written through a link, because it may lead outside of the requested folder: ${shownOf(path)}`,
      );
    }
    await mkdir(bytesOf(path), { recursive: true });
    folders.add(path);
  }
}

/**
 * Removes a link, so that nothing is written through it.
 *
 * @throws Error for a pipe, a socket or a device /
 */
async function clear(path: PathLike): Promise<void> {
  await requireWritable(path);
  if ((await kindOf(path))?.isSymbolicLink() === true) await rm(path);
}

async function requireWritable(path: PathLike): Promise<void> {
  const found = await kindOf(path);
  if (found === undefined || found.isFile() || found.isDirectory() || found.isSymbolicLink()) return;
  throw new Error(`${unknownKind(String(path), found).message}; nothing is written there`);
}

const kindOf = (path: PathLike) => lstat(path).catch(() => undefined);

const isFolder = async (path: string): Promise<boolean> => (await kindOf(path))?.isDirectory() === true;

/** `key export` saves the key in a file that only its owner can read; `-o -` prints it. */
export const exportKey: Presenter = async (session, call) => {
  const named = call.options.get("output")?.[0];
  if (named === "-") return print(session, call);
  const response = await session.send(call);
  const ending = call.options.get("format")?.[0] === "pem-pkcs8-cleartext" ? "pem" : "key";
  const path = resolve(session.context.cwd, named ?? `${basename(call.arguments[0] ?? "")}.${ending}`);
  await requireWritable(path);
  await pipeline(response.body, createWriteStream(path, { mode: 0o600 }));
  checkEnd(response);
};
