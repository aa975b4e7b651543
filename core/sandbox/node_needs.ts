/** The files that Node.js itself needs in a sandbox, and its options that restrict it once more. */
import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { FileRule } from "./kernel/landlock.ts";
import type { SandboxLaunch, SandboxPolicy } from "./policy.ts";

const NULL = "/dev/null";

/** Files that Node and the C library open at their start or for functions of `node:os`. */
const opened = [
  // The C library's list of libraries, and the local time.
  "/etc/ld.so.cache",
  "/etc/localtime",
  "/usr/share/zoneinfo",
  // OpenSSL's settings. Node exits if it finds a file there that it may not read.
  "/etc/ssl/openssl.cnf",
  "/usr/lib/ssl/openssl.cnf",
  "/etc/pki/tls/openssl.cnf",
  "/dev/urandom",
  // os.freemem, os.cpus, os.uptime, os.loadavg, process.memoryUsage
  "/proc/meminfo",
  "/proc/stat",
  "/proc/cpuinfo",
  "/proc/uptime",
  "/proc/loadavg",
  "/proc/self/stat",
  "/sys/devices/system/cpu/online",
];

/** Folders of libraries, for programs and addons, whose needs nobody knows in advance. */
export const libraryFolders = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"];

let loaded: readonly string[] | undefined;

/** Returns the libraries that this Node has loaded, which a second one loads as well. */
function libraries(): readonly string[] {
  if (loaded !== undefined) return loaded;
  const lines = readFileSync("/proc/self/maps", "utf8").split("\n");
  const files = lines.flatMap((line) => /\s(\/\S*\.so(?:\.[\w.]+)?)$/.exec(line)?.[1] ?? []);
  loaded = [...new Set(files)];
  return loaded;
}

/** The dynamic loader is executed together with each program. */
const isLoader = (file: string) => basename(file).startsWith("ld-");

/** Returns the rules that Node needs. */
export function nodeRules({ run, addons }: Pick<SandboxPolicy, "run" | "addons">): readonly FileRule[] {
  const folders = run.length > 0 || addons ? libraryFolders : [];
  return [
    [realpathSync(process.execPath), "run"],
    ...libraries().map((file): FileRule => [file, isLoader(file) ? "run" : "read"]),
    ...[...opened, ...folders].map((path): FileRule => [path, "read"]),
    [NULL, "write"],
  ];
}

/** Returns the rules of a sandbox. */
export function rulesOf(policy: SandboxPolicy): readonly FileRule[] {
  const { read, write, run } = policy;
  return [
    ...nodeRules(policy),
    ...read.map((path): FileRule => [path, "read"]),
    ...write.map((path): FileRule => [path, "write"]),
    ...run.map((path): FileRule => [path, "run"]),
  ];
}

/** Folders of the libraries that are needed, for a view of the file system that has no others. */
export function foldersOfLibraries(): readonly string[] {
  return [...new Set([...libraryFolders, ...libraries().map(dirname)])];
}

/** Returns the arguments of Node for a sandboxed program. */
export function nodeArguments({ program, args, policy, nodeOptions = [], testing }: SandboxLaunch): readonly string[] {
  const { read, write, run, addons } = policy;
  const permissions = [
    "--permission",
    "--no-experimental-ffi",
    ...[...read, ...write, NULL].map((path) => `--allow-fs-read=${path}`),
    ...[...write, NULL].map((path) => `--allow-fs-write=${path}`),
    // Threads have the same restrictions. The flag for the network is needed for the sockets that
    // were inherited; others cannot be made.
    "--allow-worker",
    "--allow-net",
    ...(run.length > 0 ? ["--allow-child-process"] : []),
    ...(addons ? ["--allow-addons"] : []),
    // Node warns of the flags above.
    "--disable-warning=SecurityWarning",
    "--disable-warning=ExperimentalWarning",
  ];
  return [
    "--disable-sigusr1",
    ...(testing?.native ? ["--no-warnings"] : permissions),
    ...nodeOptions,
    program,
    ...args,
  ];
}
