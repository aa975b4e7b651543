/**
 * Plays the host of a hostile program: starts it in a sandbox, and prints as JSON what it got and
 * what it has changed. The argument is a `Setting`. It runs as root and as an ordinary user.
 */
import { spawn } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { availableParallelism, getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { launchSandboxed, type SandboxPolicy } from "#core/sandbox/index.ts";

export interface Setting {
  readonly namespaces: SandboxPolicy["namespaces"];
  readonly user: SandboxPolicy["user"];
  /** Without Node's own permissions, and with system calls. */
  readonly isNative: boolean;
  readonly landlockAbi?: number;
  /** Without any sandbox, to see that the attempts can succeed. */
  readonly isControl?: boolean;
  readonly isX32?: boolean;
}

export interface Report {
  readonly outcomes: Readonly<Record<string, string>>;
  readonly allowed: readonly string[];
  readonly layers: readonly string[];
  readonly changed: readonly string[];
  readonly stderr: string;
  readonly code: number | null;
  readonly signal: string | null;
  readonly user: number | undefined;
}

const setting = JSON.parse(process.argv[2]!) as Setting;
const folder = realpathSync(mkdtempSync(join(tmpdir(), "modhost-sandbox-")));
const [own, data, outside, listen] = ["own", "data", "outside", "listen"].map((name) => join(folder, name));
const hostile = join(own!, "hostile.mjs");

/** Everybody may do everything here as far as modes of files go: only the sandbox refuses. */
function prepare(): void {
  chmodSync(folder, 0o755);
  for (const path of [own!, data!, outside!, join(outside!, "empty")]) {
    mkdirSync(path);
    chmodSync(path, 0o777);
  }
  mkdirSync(listen!, { mode: 0o700 });
  copyFileSync(fileURLToPath(new URL("hostile.mjs", import.meta.url)), hostile);
  for (const path of [
    "outside/secret.txt",
    "outside/spare",
    "outside/movable",
    "own/victim.txt",
    "own/movable",
    "own/addon.node",
  ]) {
    writeFileSync(join(folder, path), "untouched");
    chmodSync(join(folder, path), 0o666);
  }
  symlinkSync(join(outside!, "secret.txt"), join(own!, "link"));
}

const listening = (server: Server, where: string | number) =>
  new Promise<void>((resolve) => void server.listen(where, () => resolve()));

/** Returns everything that a process of the same user could change about the host and its files. */
function state(): Readonly<Record<string, unknown>> {
  const fileState = (path: string) => {
    const { mode, uid, size, mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? {};
    return [mode, uid, size, mtimeMs, size && size > 0 ? readFileSync(path, "utf8").slice(0, 20) : ""].join();
  };
  return {
    ...Object.fromEntries(
      ["outside/secret.txt", "outside/spare", "outside/movable", "own/victim.txt", "own/movable"].map((path) => [
        path,
        fileState(join(folder, path)),
      ]),
    ),
    empty: statSync(join(outside!, "empty"), { throwIfNoEntry: false })?.isDirectory(),
    priority: getPriority(),
    processors: availableParallelism(),
    limits: readFileSync("/proc/self/limits", "utf8"),
  };
}

function policy(): SandboxPolicy {
  const { namespaces, user } = setting;
  const cgroup = { memory: 2 ** 30, tasks: 1000, cores: 4 };
  return { read: [own!], write: [data!], run: [], addons: false, env: { ONLY: "this" }, namespaces, user, cgroup };
}

/** The cgroup that this process divides for its sandboxes, where it can. */
function cgroups(): string {
  const [, path = "/"] = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8")) ?? [];
  return join("/sys/fs/cgroup", path.replace(/\/modhost-server$/, ""));
}

function start(args: readonly string[]) {
  if (!setting.isControl) {
    const { landlockAbi, isNative } = setting;
    const testing = { native: isNative, ...(landlockAbi !== undefined && { landlockAbi }) };
    return launchSandboxed({
      name: "hostile",
      program: hostile,
      args,
      listen: join(listen!, "s"),
      policy: policy(),
      testing,
    });
  }
  const stdio = ["ignore", "pipe", "pipe", "pipe", "pipe"] as const;
  const child = spawn(process.execPath, ["--no-warnings", hostile, ...args], { stdio: [...stdio], env: {} });
  const socket = child.stdio[3] as Duplex;
  return { child, socket, layers: [] };
}

async function run(): Promise<Report> {
  // Without a sandbox the attempts succeed, and root could harm the machine by them.
  if (setting.isControl && process.getuid?.() === 0) throw new Error("the control must not run as root");
  prepare();
  const connections: string[] = [];
  const servers = ["unix", "tcp"].map((name) =>
    createServer((socket) => {
      connections.push(name);
      socket.destroy();
    }),
  );
  const [unix, tcp] = servers;
  await listening(unix!, join(outside!, "host.sock"));
  chmodSync(join(outside!, "host.sock"), 0o777);
  await listening(tcp!, 0);
  const { port } = tcp!.address() as { port: number };
  const { isNative, isControl, isX32 } = setting;
  const facts = {
    own,
    data,
    outside,
    host: process.pid,
    cgroups: cgroups(),
    port,
    isNative,
    isControl,
    isX32,
    ...(isX32 && { tries: [] }),
  };
  const before = state();
  const { child, socket, layers } = start([JSON.stringify(facts)]);
  const [written, stderr, [code, signal]] = await Promise.all([
    text(socket),
    text(child.stderr!),
    new Promise<[number | null, string | null]>((resolve) => void child.once("exit", (...end) => resolve(end))),
    text(child.stdout!),
  ]);
  const after = state();
  for (const server of servers) server.close();
  const changed = Object.keys(before).filter((key) => before[key] !== after[key]);
  const { outcomes, allowed } =
    written === "" ? { outcomes: {}, allowed: [] } : JSON.parse(written.slice(written.indexOf("{")));
  return {
    outcomes,
    allowed,
    layers,
    changed: [...changed, ...connections],
    stderr,
    code,
    signal,
    user: process.getuid?.(),
  };
}

try {
  console.log(JSON.stringify(await run()));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
