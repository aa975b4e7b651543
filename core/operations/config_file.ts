/**
 * The config file and `modules.lock` for editors: read with an etag that shows whether the file has
 * changed, and replaced in one step.
 */
import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { access, chmod, chown, open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Config, formatOf, modulesLockIn } from "../config/index.ts";
import type { ConfigFile } from "../types.ts";
import { ModhostError, reasonOf } from "../util/errors.ts";

/** Number of previous texts that are saved next to the file. */
const MAX_PREVIOUS = 3;

/** `path` is undefined if the host was started without a file. */
export async function readConfigFile(path: string | undefined): Promise<ConfigFile> {
  if (path === undefined) {
    const reason = "the server was started without a config file: create a modhost.config.yaml and restart the server";
    return { is_editable: false, reason };
  }
  const format = formatOf(path);
  try {
    const bytes = await readFile(path);
    const reason = await reasonNotToEdit(path, bytes);
    return { path, format, text: bytes.toString(), etag: etagOf(bytes), is_editable: reason === undefined, reason };
  } catch (error) {
    return { path, format, is_editable: false, reason: `it cannot be read: ${reasonOf(error)}` };
  }
}

/** Reads `modules.lock` in a folder. Without the file, the text is undefined. */
export async function readLockFile(directory: string): Promise<ConfigFile> {
  const path = modulesLockIn(directory);
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  const reason = await reasonNotToWrite(path);
  const is_editable = reason === undefined;
  return { path, format: "json", text: bytes?.toString(), etag: etagOf(bytes ?? Buffer.of()), is_editable, reason };
}

async function reasonNotToEdit(path: string, bytes: Buffer): Promise<string | undefined> {
  if (formatOf(path) === "script")
    return "it is a program, and reading it would run it: edit it where it is, and reload";
  if (basename(path) === "package.json") return "it is part of a package.json: edit it where it is, and reload";
  if (!isUtf8(bytes)) return "it is not UTF-8 text";
  return reasonNotToWrite(path);
}

async function reasonNotToWrite(path: string): Promise<string | undefined> {
  const folder = dirname(await realpath(path).catch(() => path));
  const isWritable = await access(folder, constants.W_OK).then(
    () => true,
    () => false,
  );
  return isWritable ? undefined : `this process may not write in ${folder}`;
}

/** An edit of a file whose current text has this etag. */
export interface ConfigEdit {
  /** The config file, or `modules.lock`. */
  readonly file: "config" | "lock";
  readonly text: string;
  readonly etag: string;
}

/** Resolves to the path of the file. @throws {ModhostError} CONFIG_NOT_EDITABLE, CONFIG_CHANGED */
export async function assertEditable(config: Config, { file, etag }: ConfigEdit): Promise<string> {
  const found = file === "lock" ? await readLockFile(config.directory) : await readConfigFile(config.file);
  const { path } = found;
  if (path === undefined || !found.is_editable)
    throw new ModhostError("CONFIG_NOT_EDITABLE", { reason: found.reason ?? "there is no file" });
  if (found.etag !== etag) throw new ModhostError("CONFIG_CHANGED", { path });
  return path;
}

/**
 * Replaces the text of the file and saves the previous one next to it: readers see either the old
 * or the new text. Links, mode and owner stay. Returns a function that restores the previous text.
 * @throws {ModhostError} CONFIG_NOT_WRITTEN
 */
export async function replaceConfigFile(path: string, text: string): Promise<() => Promise<void>> {
  try {
    const target = await realpath(path);
    const previous = await readFile(target);
    await savePrevious(target, previous);
    await write(target, text);
    return () => write(target, previous);
  } catch (error) {
    throw new ModhostError("CONFIG_NOT_WRITTEN", { path, reason: reasonOf(error) }, { cause: error });
  }
}

/**
 * Replaces the text of `modules.lock`, or creates the file. Returns a function that restores the
 * previous state.
 * @throws {ModhostError} CONFIG_NOT_WRITTEN
 */
export async function replaceLockFile(path: string, text: string): Promise<() => Promise<void>> {
  try {
    const target = await realpath(path).catch(() => path);
    const previous = await readFile(target).catch(() => undefined);
    await write(target, text, previous === undefined ? dirname(target) : target);
    return () => (previous === undefined ? rm(target) : write(target, previous));
  } catch (error) {
    throw new ModhostError("CONFIG_NOT_WRITTEN", { path, reason: reasonOf(error) }, { cause: error });
  }
}

/** Saves the previous text; `.1` is the latest. */
async function savePrevious(target: string, previous: Buffer): Promise<void> {
  for (let at = MAX_PREVIOUS - 1; at > 0; at -= 1) {
    await rename(`${target}.${at}`, `${target}.${at + 1}`).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
  }
  await write(`${target}.1`, previous, target);
}

/**
 * `like` is the file whose mode and owner the new file gets. A file that is like a folder gets its
 * owner.
 */
async function write(target: string, text: string | Buffer, like = target): Promise<void> {
  const model = await stat(like);
  const { uid, gid } = model;
  const mode = model.isDirectory() ? 0o644 : model.mode;
  const draft = join(dirname(target), `.${basename(target)}.${process.pid}.new`);
  try {
    // Nobody else may read the file before it has the mode and owner of the old one.
    const file = await open(draft, "w", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    const made = await stat(draft);
    if (made.uid !== uid || made.gid !== gid) await chown(draft, uid, gid);
    await chmod(draft, mode & 0o7777);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

function etagOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 32);
}
