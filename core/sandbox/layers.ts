/** Finds out, once, which layers of the sandbox work on this machine. */
import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { release } from "node:os";
import { ServerCgroup } from "./cgroup.ts";
import type { FileRule } from "./kernel/landlock.ts";
import { isKnown } from "./kernel/numbers.ts";
import { BUBBLEWRAP, bubblewrap, launcherFile } from "./namespaces.ts";
import { nodeRules } from "./node_needs.ts";
import type { SandboxLayer } from "./policy.ts";
import type { LauncherSpec, ProbeReport } from "./spec.ts";
import { userOf } from "./users.ts";

/** Milliseconds that a probe may take on a busy machine. */
const PATIENCE = 30_000;
/** The first Node.js whose FFI the launcher knows. */
export const NEEDED_NODE = 26;

const INSTEAD = "Run the module isolated or trusted.";

/** Options of the Node that runs the launcher. */
export const launcherOptions = ["--no-warnings", "--experimental-ffi"];

type Probed = ProbeReport | { readonly failed: { readonly step: string; readonly reason: string } };

interface Findings {
  /** Without namespaces and without an own user. */
  readonly kernel: Probed;
  readonly user: Probed | undefined;
  readonly namespaces: Probed;
}

/** The environment of the launcher. The module gets its own. Bubblewrap is found by the path. */
export const launcherEnvironment = (program: string | undefined) =>
  program === BUBBLEWRAP ? { PATH: process.env.PATH } : {};

let findings: Findings | undefined;
let cgroup: ServerCgroup | undefined;

/** The cgroup that this process divides for its sandboxes. */
export const serverCgroup = (): ServerCgroup => (cgroup ??= new ServerCgroup());

/** Why no launcher can run here, whatever the kernel says; undefined if it can. */
function withoutLauncher(): SandboxLayer | undefined {
  const { platform, arch, versions } = process;
  const missing = (name: string, detail: string, remedy: string): SandboxLayer => ({
    name,
    works: false,
    detail,
    remedy,
    isRequired: true,
  });
  if (platform !== "linux") {
    const remedy = `Run modhost in a Linux container or virtual machine. ${INSTEAD}`;
    return missing("system", `A sandbox needs Linux 5.13 or later, and this is ${platform}.`, remedy);
  }
  if (!isKnown(arch)) {
    return missing("system", `A sandbox needs a processor of the kind x64 or arm64, and this is ${arch}.`, INSTEAD);
  }
  if (Number.parseInt(versions.node, 10) < NEEDED_NODE) {
    const detail = `A sandbox needs Node.js ${NEEDED_NODE} or later, and this is ${versions.node}.`;
    const remedy = `Start modhost with Node.js ${NEEDED_NODE}: https://nodejs.org, or npm install node.`;
    return missing("node", detail, remedy);
  }
  return undefined;
}

/**
 * Returns each layer by name: whether it works here, why not, and how to get it. The first call
 * starts the launcher a few times, without a program, which takes a part of a second.
 */
export function sandboxLayers(): readonly SandboxLayer[] {
  const missing = withoutLauncher();
  if (missing !== undefined) return [missing];
  findings ??= probe();
  return [
    nodeLayer(findings.kernel),
    ...kernelLayers(findings.kernel),
    permissionLayer,
    limitsLayer,
    cgroupLayer(serverCgroup()),
    namespaceLayer(findings),
    userLayer(findings),
  ];
}

/** Returns a sentence that says why a sandboxed module cannot run here; undefined if it can. */
export function sandboxUnavailable(): string | undefined {
  const missing = sandboxLayers().find(({ works, isRequired }) => isRequired && !works);
  return missing && [missing.detail, missing.remedy].join(" ");
}

/** Returns whether a layer works here. */
export const hasLayer = (name: string) => sandboxLayers().some((layer) => layer.name === name && layer.works);

function probe(): Findings {
  const kernel = probeWith({});
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? probeWith({ user: userOf("probe") }) : undefined;
  return { kernel, user, namespaces: probeNamespaces() };
}

function specOf(rules: readonly FileRule[], more: Partial<LauncherSpec>): string {
  const node = realpathSync(process.execPath);
  const parent = process.pid;
  const spec: LauncherSpec = {
    node,
    args: [],
    env: [],
    rules,
    run: false,
    limits: {},
    parent,
    isInNamespace: false,
    ...more,
  };
  return JSON.stringify(spec);
}

function probeWith(more: Partial<LauncherSpec>): Probed {
  const rules = nodeRules({ run: [], addons: false });
  return run([process.execPath, ...launcherOptions, launcherFile, specOf(rules, more)]);
}

function probeNamespaces(): Probed {
  const rules = nodeRules({ run: [], addons: false });
  const { parent: _, ...spec } = JSON.parse(specOf(rules, { isInNamespace: true })) as LauncherSpec;
  const words = bubblewrap(rules, launcherFile, []);
  return run([...words, spec.node, ...launcherOptions, launcherFile, JSON.stringify(spec)]);
}

function run([program, ...args]: readonly string[]): Probed {
  const { error, stdout, stderr, status, signal } = spawnSync(program!, args, {
    env: launcherEnvironment(program),
    encoding: "utf8",
    timeout: PATIENCE,
  });
  const failed = (reason: string): Probed => ({ failed: { step: "start", reason } });
  if (error !== undefined)
    return failed((error as NodeJS.ErrnoException).code === "ENOENT" ? "it is not installed" : error.message);
  if (status !== 0) return failed(stderr.trim().split("\n").at(-1) || `it ended with ${signal ?? status}`);
  return JSON.parse(stdout);
}

/** The launcher itself, which needs Node's FFI. Some builds of Node leave it out. */
function nodeLayer({ failed }: Probed): SandboxLayer {
  const reason = failed?.step === "ffi" || failed?.step === "start" ? failed.reason : undefined;
  return {
    name: "node",
    works: reason === undefined,
    detail:
      reason === undefined
        ? `Node.js ${process.versions.node} can start sandboxes.`
        : `Node.js ${process.versions.node} cannot start the launcher of sandboxes: ${reason}.`,
    isRequired: true,
    ...(reason !== undefined && { remedy: "Install Node.js from https://nodejs.org, or npm install node." }),
  };
}

function kernelLayers(kernel: Probed): readonly SandboxLayer[] {
  const { failed } = kernel;
  const abi = "landlockAbi" in kernel ? kernel.landlockAbi : 0;
  const hasLandlock = abi > 0 && failed?.step !== "landlock";
  const landlock = {
    name: "landlock",
    works: hasLandlock,
    detail: hasLandlock
      ? `The kernel refuses every file that is not granted (Landlock, ABI ${abi}).`
      : `The kernel cannot restrict files: ${failed?.reason}.`,
    isRequired: true,
    ...(!hasLandlock && {
      remedy: `It needs Linux 5.13 or later, and this is ${release()}. If it is new enough, add landlock to the kernel's parameter lsm=, and allow the landlock calls in the container's seccomp profile.`,
    }),
  };
  const seccomp = {
    name: "seccomp",
    works: failed === undefined,
    detail:
      failed === undefined
        ? "The kernel refuses every system call that is not on a list."
        : `The list of system calls cannot be installed: ${failed.step}: ${failed.reason}.`,
    isRequired: true,
    ...(failed && {
      remedy: "It needs a kernel with seccomp filters, which a container's profile can forbid to its programs.",
    }),
  };
  return [landlock, seccomp];
}

const permissionLayer: SandboxLayer = {
  name: "node-permission",
  works: true,
  detail: "Node.js refuses files, addons, child processes and native calls that are not granted (--permission).",
  isRequired: false,
};

const limitsLayer: SandboxLayer = {
  name: "limits",
  works: true,
  detail: "The kernel limits reserved memory, open files, processes and the size of files (prlimit).",
  isRequired: false,
};

function cgroupLayer({ missing }: ServerCgroup): SandboxLayer {
  return {
    name: "cgroup",
    works: missing === undefined,
    detail:
      missing ??
      "The kernel limits the memory, the threads and the use of the processor of each module with all its programs.",
    isRequired: false,
    ...(missing !== undefined && {
      remedy:
        "Run modhost as a service of systemd with Delegate=yes and ProtectControlGroups=no, as in the unit of the package.",
    }),
  };
}

function namespaceLayer({ namespaces: { failed } }: Findings): SandboxLayer {
  return {
    name: "namespaces",
    works: failed === undefined,
    detail:
      failed === undefined
        ? "Bubblewrap hides processes, mounts, the network and the name of the host."
        : `Bubblewrap does not work: ${failed.reason.replace(/\.+$/, "")}.`,
    isRequired: false,
    ...(failed && {
      remedy:
        "Install bubblewrap. Where it is installed, the system must allow user namespaces: Ubuntu needs an AppArmor profile with userns for bwrap, and containers and systemd units often forbid them.",
    }),
  };
}

function userLayer({ user }: Findings): SandboxLayer {
  const works = user !== undefined && user.failed === undefined;
  const detail = works
    ? "Each module runs as a user of its own."
    : user === undefined
      ? "All modules run as the user of the server, which is not root."
      : `A module cannot become a user of its own: ${user.failed?.reason}.`;
  const remedy =
    user === undefined
      ? "Start modhost as root to get it. The other layers do not depend on it."
      : "The container must have the capabilities SETUID and SETGID, and user ids from 1879048192 on.";
  return { name: "user", works, detail, isRequired: false, ...(!works && { remedy }) };
}
