/** Starts a sandboxed process. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, realpathSync } from "node:fs";
import { devNull } from "node:os";
import { dirname } from "node:path";
import type { Duplex } from "node:stream";
import { ModhostError } from "../util/errors.ts";
import type { SandboxCgroup } from "./cgroup.ts";
import {
  hasLayer,
  launcherEnvironment,
  launcherOptions,
  sandboxLayers,
  sandboxUnavailable,
  serverCgroup,
} from "./layers.ts";
import { bubblewrap, launcherFile } from "./namespaces.ts";
import { nodeArguments, rulesOf } from "./node_needs.ts";
import type { SandboxLaunch, SandboxPolicy } from "./policy.ts";
import { CHANNEL, type LauncherSpec, LISTENER } from "./spec.ts";
import { userOf } from "./users.ts";

export interface Sandboxed {
  /**
   * The process, or the one of bubblewrap that waits for it. With bubblewrap, only SIGKILL reaches
   * the module's process: see `moduleProcess`.
   */
  readonly child: ChildProcess;
  /** The channel to the process, which has its other end at descriptor 3. */
  readonly socket: Duplex;
  /** Names of the layers that restrict the process. */
  readonly layers: readonly string[];
  /** The cgroup of its processes, if that layer works. */
  readonly cgroup?: SandboxCgroup;
}

/**
 * Starts a program in a sandbox.
 * @throws {ModhostError} SANDBOX_UNAVAILABLE if a layer is missing that is required
 */
export function launchSandboxed(launch: SandboxLaunch): Sandboxed {
  const { policy, testing } = launch;
  const isInNamespace = useNamespaces(policy);
  const user = sandboxUser(launch.name, policy.user);
  const rules = rulesOf(policy);
  const cgroup = policy.cgroup && serverCgroup().create(policy.cgroup);
  const spec: LauncherSpec = {
    listen: launch.listen,
    ...(launch.listenForConnections !== undefined && { listenForConnections: launch.listenForConnections }),
    node: realpathSync(process.execPath),
    args: nodeArguments(launch),
    env: Object.entries(policy.env).map(([name, value]) => `${name}=${value}`),
    rules,
    program: launch.program,
    run: policy.run.length > 0,
    limits: policy.rlimits ?? {},
    hasCgroup: cgroup !== undefined,
    isInNamespace,
    ...(user !== undefined && { user }),
    ...(!isInNamespace && { parent: process.pid }),
    ...(testing?.landlockAbi !== undefined && { landlockAbi: testing.landlockAbi }),
  };
  const before = isInNamespace ? bubblewrap(rules, launcherFile, [dirname(launch.listen)]) : [];
  const [program, ...args] = [...before, spec.node, ...launcherOptions, launcherFile];
  const empty = openSync(devNull, "r");
  const child = spawn(program!, args, {
    // The launcher replaces descriptor 4 by the listening socket after it has read the spec, which
    // others on this machine could read if it were an argument. Descriptors 5 and 6 are taken in
    // any case, so that the launcher opens nothing there. "ignore" would leave them free. By
    // writing to descriptor 5 the launcher enters its cgroup, which bubblewrap hides from it.
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", cgroup?.entrance ?? empty, launch.compiled ?? empty],
    env: launcherEnvironment(program),
    cwd: "/",
    // A session of its own: no terminal, and no signals to the server's process group.
    detached: true,
  });
  closeSync(empty);
  if (spec.run) child.once("exit", () => endGroup(child.pid));
  if (cgroup !== undefined) {
    closeSync(cgroup.entrance);
    child.once("exit", () => void cgroup.end());
    child.once("error", () => void cgroup.end());
  }
  const input = child.stdio[LISTENER] as Duplex;
  // A launcher that ends before it has read everything reports why on stderr.
  input.on("error", () => undefined);
  input.end(JSON.stringify(spec));
  const layers = [...layersOf(launch, isInNamespace, user), ...(cgroup === undefined ? [] : ["cgroup"])];
  return { child, socket: child.stdio[CHANNEL] as Duplex, layers, ...(cgroup !== undefined && { cgroup }) };
}

/**
 * Starts a program that nothing restricts, for an audit: Node.js publishes what its permissions
 * would refuse. It makes no sockets.
 */
export function launchAudited(launch: Omit<SandboxLaunch, "listen" | "listenForConnections">): Sandboxed {
  const { program, args, policy, nodeOptions = [], compiled = "ignore" } = launch;
  const child = spawn(process.execPath, ["--permission-audit", "--no-warnings", ...nodeOptions, program, ...args], {
    stdio: ["ignore", "pipe", "pipe", "pipe", "ignore", "ignore", compiled],
    env: policy.env,
    cwd: "/",
    detached: true,
  });
  child.once("exit", () => endGroup(child.pid));
  return { child, socket: child.stdio[CHANNEL] as Duplex, layers: [] };
}

/** Ends the programs that a module has started. They cannot leave its process group. */
function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // All of them have ended.
  }
}

function useNamespaces({ namespaces }: SandboxPolicy): boolean {
  const reason = sandboxUnavailable();
  if (reason !== undefined) throw new ModhostError("SANDBOX_UNAVAILABLE", { reason });
  if (namespaces === "off") return false;
  const works = hasLayer("namespaces");
  if (works || namespaces === "auto") return works;
  const { detail, remedy } = sandboxLayers().find(({ name }) => name === "namespaces")!;
  throw new ModhostError("SANDBOX_UNAVAILABLE", { reason: `${detail} ${remedy}` });
}

/**
 * Returns the id of the user and group that a module of this name runs as; undefined if it runs as
 * the user of the server. Files that the module reads must be readable to it, and folders that it
 * writes should belong to it.
 */
export function sandboxUser(name: string, user: SandboxPolicy["user"]): number | undefined {
  return user === "own" && hasLayer("user") ? userOf(name) : undefined;
}

function layersOf({ testing }: SandboxLaunch, isInNamespace: boolean, user: number | undefined): readonly string[] {
  return [
    "landlock",
    "seccomp",
    "limits",
    ...(isInNamespace ? ["namespaces"] : []),
    ...(testing?.native ? [] : ["node-permission"]),
    ...(user === undefined ? [] : ["user"]),
  ];
}

/**
 * Returns the id of the module's process, as this process sees it: that of `child`, or with
 * bubblewrap the process at the end of its chain. Undefined once it has ended.
 */
export function moduleProcess({ child: { pid }, layers }: Sandboxed): number | undefined {
  if (pid === undefined || !layers.includes("namespaces")) return pid;
  const [init] = childrenOf(pid);
  return init === undefined ? undefined : childrenOf(init)[0];
}

function childrenOf(pid: number): readonly number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text.split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
