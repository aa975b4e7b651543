/** Outcomes that become files. */
import { createWriteStream } from "node:fs";
import { lstat, mkdir, rm, symlink } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { readTar, type TarEntry, TarError } from "../../util/tar.ts";
import { lengthOf, type Presenter, print } from "./outcome.ts";
import { isOn } from "./parse.ts";
import { checkEnd } from "./session.ts";

/** `get`: files and folders, or with `archive` or `compress` one file. */
export const get: Presenter = async (session, call) => {
  const { cwd } = session.context;
  const source = call.arguments[0]?.replace(/\/+$/, "").split("/").at(-1) ?? "download";
  const named = call.options.get("output")?.[0];
  const wanted = resolve(cwd, named ?? source);
  const [archive, compress] = [isOn(call, "archive"), isOn(call, "compress")];
  const answer = await session.send(call);
  const progress = session.progress(lengthOf(answer));
  let done = 0;
  const counted = async function* () {
    for await (const piece of answer.body) {
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
    await removeLink(file);
    await pipeline(counted, createWriteStream(file));
  } else {
    const target = inside ? join(wanted, source) : wanted;
    await session.write(`Saving file(s) to ${shown(target)}\n`);
    await mkdir(dirname(target), { recursive: true });
    await unpack(readTar(counted()), target).catch((error: unknown) => {
      // The server broke the archive off, and says why.
      if (error instanceof TarError) checkEnd(answer);
      throw error;
    });
  }
  progress?.clear();
  checkEnd(answer);
};

/** What of a mode is kept: who may read, write and run it; not whose rights it runs with. */
const MAX_MODE = 0o777;

/** Kinds of entries that are written. */
const written: ReadonlySet<string> = new Set(["directory", "symlink", "file"]);

/**
 * Writes the entries of an archive, of which the first is `target` itself. Nothing is written outside of it: not
 * through names with `..`, and not through links, whether of the archive or found on the disk.
 */
async function unpack(entries: AsyncIterable<TarEntry>, target: string): Promise<void> {
  /** Made or found, and no links. */
  const folders = new Set<string>();
  for await (const { name, type, linkname, mode, body } of entries) {
    const below = name.replace(/\/$/, "").split("/").slice(1);
    const path = join(target, ...below);
    if (below.some((part) => part === "" || part === "." || part === "..")) {
      throw new Error(`The archive has an entry outside of what was asked for: ${name}`);
    }
    if (!written.has(type))
      throw new Error(`The archive has an entry that is no file, folder or link: ${name} (${type})`);
    if (path !== target) await makeFolder(dirname(path));
    // A folder that the caller named by a link of their own is not made at another place.
    if (path !== target || type !== "directory") await removeLink(path);
    if (type === "directory") await makeFolder(path);
    else if (type === "symlink") await symlink(linkname, path);
    else await pipeline(body, createWriteStream(path, { mode: mode & MAX_MODE }));
  }

  /** With those above it, up to `target`. @throws Error where one of them is a link */
  async function makeFolder(path: string): Promise<void> {
    if (folders.has(path)) return;
    if (path !== target) await makeFolder(dirname(path));
    if (await isLink(path)) {
      throw new Error(`Nothing is written through a link, as it may lead outside of what was asked for: ${path}`);
    }
    await mkdir(path, { recursive: true });
    folders.add(path);
  }
}

/** A link in the way is replaced, not written through. */
async function removeLink(path: string): Promise<void> {
  if (await isLink(path)) await rm(path);
}

async function isLink(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isSymbolicLink() === true;
}

async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isDirectory() === true;
}

/** `key export`: the key in a file that only its owner reads; `-o -` prints it. */
export const exportKey: Presenter = async (session, call) => {
  const named = call.options.get("output")?.[0];
  if (named === "-") return print(session, call);
  const answer = await session.send(call);
  const path = resolve(session.context.cwd, named ?? `${basename(call.arguments[0] ?? "")}.key`);
  await pipeline(answer.body, createWriteStream(path, { mode: 0o600 }));
  checkEnd(answer);
};
