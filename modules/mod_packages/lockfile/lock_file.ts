/** Reads and writes `modules.lock`. */
import { readFile } from "node:fs/promises";
import { writeFileAtomic } from "../../../core/index.ts";
import {
  FORMAT,
  type InstalledVersion,
  type LockedModule,
  type LockedModules,
  type LockedPackage,
  modulesOf,
  packageFields,
  parseLockFile,
  versionFields,
} from "./format.ts";

const MODE = 0o644;

/**
 * Returns the modules in the lock file; none if there is no file.
 * @throws {PackageError} LOCK_INVALID, LOCK_NEWER
 */
export async function readLockFile(path: string): Promise<LockedModules> {
  const content = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return content === undefined ? modulesOf({}) : parseLockFile(content, path);
}

/** Replaces the lock file. */
export async function writeLockFile(path: string, content: string): Promise<void> {
  await writeFileAtomic(path, content, MODE);
}

/** Returns the text of a lock file. The same modules always make the same text. */
export function lockFileText(modules: LockedModules): string {
  const written = { version: FORMAT, modules: mapped(modules, writtenModule) };
  return `${JSON.stringify(written, null, 2)}\n`;
}

function writtenModule(module: LockedModule): unknown {
  const { previous } = module;
  return { ...writtenVersion(module), ...(previous && { previous: writtenVersion(previous) }) };
}

function writtenVersion(version: InstalledVersion): Record<string, unknown> {
  const packages = mapped(version.packages, (each: LockedPackage) => picked(each, packageFields));
  const permissions = sorted(version.permissions);
  return picked({ ...version, packages, permissions, grant: sorted(version.grant) }, versionFields);
}

function picked<T extends object>(value: T, fields: readonly (keyof T)[]): Record<string, unknown> {
  return Object.fromEntries(fields.flatMap((field) => (value[field] === undefined ? [] : [[field, value[field]]])));
}

function mapped<T>(table: Readonly<Record<string, T>>, write: (value: T) => unknown): Record<string, unknown> {
  const entries = Object.entries(table).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([name, value]) => [name, write(value)]));
}

const sorted = (table: object): Record<string, unknown> => mapped(table as Record<string, unknown>, (value) => value);
