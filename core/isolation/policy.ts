/** Makes the rules by which the kernel restricts the process of a sandboxed module. */
import { chmodSync, chownSync, existsSync, mkdirSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { dataFolderOf, type ModuleRights, serverParts } from "../module/rights.ts";
import { limitsOf, type ModuleLimits } from "../permissions/index.ts";
import { type CgroupLimits, hasLayer, type SandboxLimits, type SandboxPolicy, sandboxUser } from "../sandbox/index.ts";
import { makePrivateFolder } from "../util/private_folder.ts";
import type { SourceFile } from "./messages.ts";
import { giveFolder } from "./owned_folder.ts";

/** The files that a policy is made for. */
export interface PolicyFiles {
  readonly source: SourceFile;
  /** The program of the process. */
  readonly program: string;
  /** The private folder with the sockets of the process. Its temporary folder is made in it. */
  readonly folder: string;
}

/** A file or folder that keeps a module from having a user of its own. */
export interface Barrier {
  readonly path: string;
  /** Whether it is above the data folder of the module. Namespaces hide such a folder. */
  readonly isAboveData: boolean;
}

export interface MadePolicy {
  readonly policy: SandboxPolicy;
  readonly barrier: Barrier | undefined;
}

/** Returns the files and folders that a module may read, including those of this package. */
export function readablePaths({ policy }: ModuleRights): string[] {
  return [...(policy?.read ?? []), ...serverParts()];
}

/**
 * Returns the policy of a module, and makes the folders that it writes: an empty temporary one, and
 * its data folder if that is granted. Both belong to the user of the process.
 */
export function makePolicy({ source, program, folder }: PolicyFiles, rights: ModuleRights): MadePolicy {
  const { read = [], write = [], run = [], env, addons = false, namespaces = "auto" } = rights.policy ?? {};
  const temporary = temporaryFolder(folder);
  mkdirSync(temporary, { mode: 0o700 });
  const data = makeDataFolder(rights);
  const folders = data === undefined ? [] : [data];
  const barrier = barrierOf([program, source.file], rights);
  // An audited module runs as the user of the server.
  const user = barrier === undefined && rights.policy?.isAudited !== true ? "own" : "same";
  const id = sandboxUser(source.name, user);
  if (id !== undefined) {
    // The module's own user may pass through the folder of the host, and sees nothing else in it.
    chmodSync(folder, 0o711);
    chownSync(temporary, id, id);
  }
  const owner = { uid: id ?? process.getuid?.() ?? 0, gid: id ?? process.getgid?.() ?? 0 };
  for (const each of folders) giveFolder(each, owner);
  const policy: SandboxPolicy = {
    read: [...unmoved(read), ...existing(serverParts())],
    write: [temporary, ...unmoved(write)],
    run: unmoved(run),
    addons,
    // Without HOME the system would look for a user who may not exist.
    env: { HOME: temporary, ...env, TMPDIR: temporary },
    namespaces,
    user,
    rlimits: rlimitsOf(limitsOf(rights.settings), id !== undefined),
    cgroup: cgroupLimitsOf(limitsOf(rights.settings)),
  };
  return { policy, barrier };
}

/**
 * Returns what keeps a module from having a user of its own; undefined if nothing does. `files`:
 * those that its process reads first.
 */
export function barrierOf(files: readonly string[], rights: ModuleRights): Barrier | undefined {
  const data = dataFolderOf(rights);
  const isWithin = (rights.policy?.namespaces ?? "auto") !== "off" && hasLayer("namespaces");
  const barriers = [
    ...files.map((path) => ({ path: barrierTo(path), isAboveData: false })),
    // In namespaces the folders above are others, which every user may pass.
    ...(isWithin || data === undefined ? [] : [{ path: barrierAbove(data), isAboveData: true }]),
  ];
  return barriers.find((each): each is Barrier => each.path !== undefined);
}

/** Returns the folder for temporary files in the private folder of a process. */
export const temporaryFolder = (folder: string): string => join(folder, "tmp");

/** Threads that a process of Node.js and each program that it runs may have. */
const THREADS = 64;

/** Reloads run two processes of a module at once, and both count for its user. */
const AT_ONCE = 2;

/** Bytes of writable memory that V8 reserves for each heap, beyond what it uses. */
const HEAP_RESERVE = 528 * 2 ** 20;

/** Heaps that a process may have: its own, and those of its worker threads. */
const HEAPS = 9;

/**
 * Returns what the kernel enforces by itself. The host's watch is stricter, and late by a moment:
 * these bound what happens within that moment.
 */
function rlimitsOf({ memory, processes, open_files, disk }: ModuleLimits, hasOwnUser: boolean): SandboxLimits {
  return {
    data: memory * AT_ONCE + HEAP_RESERVE * HEAPS,
    openFiles: open_files,
    fileSize: disk,
    // The kernel counts threads, and all those of the user.
    ...(hasOwnUser && { processes: AT_ONCE * THREADS * (processes + 1) }),
  };
}

/**
 * The share of its processor time that the kernel leaves to a module at each moment. The host holds
 * it to the limit on average, and notices by the excess that a module is slowed down.
 */
const CPU_LEEWAY = 1.1;

/** Returns what the kernel enforces where the server can divide its cgroup. */
const cgroupLimitsOf = ({ memory, processes, cpu }: ModuleLimits): CgroupLimits => ({
  memory,
  tasks: THREADS * (processes + 1),
  cores: cpu * CPU_LEEWAY,
});

/**
 * Creates the data folder of a module that may write there, and returns its path. Only its owner
 * can open it.
 */
export function makeDataFolder(rights: ModuleRights): string | undefined {
  const folder = dataFolderOf(rights);
  if (folder !== undefined) makePrivateFolder(folder);
  return folder;
}

/**
 * Returns the options of Node.js that the process starts with. Its code finds packages under the
 * same conditions as the host, but a built program never from the sources: they would be a second
 * copy of the server. One thread collects garbage while the code runs: four would cost a small heap
 * more time to coordinate than they save. `heap`: bytes that its heap may have.
 */
export function nodeOptions(heap: number, program: string): string[] {
  const isBuilt = program.endsWith(".js");
  const conditions = process.execArgv.filter(
    (option) => /^(?:-C|--conditions=)/.test(option) && !(isBuilt && option === "--conditions=source"),
  );
  return [...conditions, "--v8-pool-size=1", `--max-old-space-size=${Math.ceil(heap / 2 ** 20)}`];
}

const OTHERS_READ = 0o004;
const OTHERS_PASS = 0o001;

/**
 * Returns what keeps other users of this machine from reading a file. A module whose files only the
 * user of the server can read does not get a user of its own, which could not read them.
 */
function barrierTo(file: string): string | undefined {
  return (statSync(file).mode & OTHERS_READ) === 0 ? file : barrierAbove(file);
}

/** Returns the nearest folder above a path that other users cannot pass. */
function barrierAbove(path: string): string | undefined {
  const folder = dirname(path);
  if ((statSync(folder).mode & OTHERS_PASS) === 0) return folder;
  return folder === dirname(folder) ? undefined : barrierAbove(folder);
}

/**
 * Returns the existing ones of granted paths, unless a link has come into their way since the
 * check.
 */
const unmoved = (paths: readonly string[]): string[] =>
  paths.filter((path) => existsSync(path) && realpathSync(path) === path);

const existing = (paths: readonly string[]): string[] => [
  ...new Set(paths.filter((path) => existsSync(path)).map((path) => realpathSync(path))),
];
