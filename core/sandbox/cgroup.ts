/**
 * Cgroups of version 2: the kernel counts everything that a sandbox and its programs use together,
 * and limits it. It works where the server has a cgroup of its own that it may divide, as with
 * `Delegate=yes` in a unit of systemd:
 *
 *     modhost.service/                     the cgroup of the service
 *     modhost.service/modhost-server/      every process of the server
 *     modhost.service/sandbox-PID-1/       one sandbox of the process PID
 *
 * The server moves into a cgroup below its own, because the kernel refuses to divide a cgroup that
 * has processes.
 */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { reasonOf } from "../util/errors.ts";

/** The most that all processes of a sandbox may use together. */
export interface CgroupLimits {
  /** Bytes. */
  readonly memory: number;
  /** Processes and threads. */
  readonly tasks: number;
  readonly cores: number;
}

const LEAF = "modhost-server";
const NEEDED = ["memory", "pids", "cpu"];

/** Microseconds in which a sandbox may use its cores. */
const PERIOD = 100_000;

/** Times that processes are moved out of the way, in case they start others meanwhile. */
const MOVES = 5;

/** Milliseconds between two attempts to remove a cgroup, and the number of attempts. */
const REMOVAL_MS = 20;
const REMOVALS = 100;

/** The kernel's files of cgroups and processes. Tests replace it. */
export interface CgroupSystem {
  /** Where cgroups are mounted. */
  readonly mount: string;
  readonly proc: string;
  readonly pid: number;
  make(folder: string): void;
  remove(folder: string): void;
  /** @throws {Error} if the kernel refuses it, or if there is no such file */
  write(file: string, text: string): void;
}

const kernel: CgroupSystem = {
  mount: "/sys/fs/cgroup",
  proc: "/proc",
  pid: process.pid,
  make: (folder) => mkdirSync(folder),
  remove: (folder) => rmdirSync(folder),
  write(file, text) {
    // Some of the files can only be written, and none of them is ever made.
    const fd = openSync(file, constants.O_WRONLY);
    try {
      writeSync(fd, text);
    } finally {
      closeSync(fd);
    }
  },
};

/** The cgroup of this server, which it divides for its sandboxes. */
export class ServerCgroup {
  readonly #system: CgroupSystem;
  /** Why there is none; undefined if it can be divided. */
  missing: string | undefined;
  #folder = "";
  #isDivided = false;
  #count = 0;

  /** Only looks at it. The first sandbox divides it. */
  constructor(system = kernel) {
    this.#system = system;
    this.missing = this.#find();
  }

  /**
   * Makes a cgroup for one sandbox. Returns undefined if that is not possible; then `missing` says
   * why.
   */
  create(limits: CgroupLimits): SandboxCgroup | undefined {
    if (this.#folder === "") return undefined;
    try {
      this.#divide();
      const made = new SandboxCgroup(this.#system, this.#unusedFolder(), limits);
      this.missing = undefined;
      return made;
    } catch (error) {
      this.missing = `The cgroup ${this.#folder} cannot be divided: ${reasonOf(error)}.`;
      return undefined;
    }
  }

  /** Returns a folder that a killed process with the same id has not left behind. */
  #unusedFolder(): string {
    for (;;) {
      this.#count += 1;
      const folder = join(this.#folder, `sandbox-${this.#system.pid}-${this.#count}`);
      if (!existsSync(folder)) return folder;
    }
  }

  /** Returns why this process has no cgroup to divide. */
  #find(): string | undefined {
    const { mount } = this.#system;
    const path = /^0::(\/.*)$/m.exec(this.#read("self/cgroup"))?.[1];
    if (path === undefined) return "The system has no cgroups of version 2.";
    const own = resolve(mount, `.${path}`);
    const isMoved = basename(own) === LEAF;
    const folder = isMoved ? dirname(own) : own;
    try {
      const controllers = readFileSync(join(folder, "cgroup.controllers"), "utf8").trim().split(" ");
      const absent = NEEDED.filter((name) => !controllers.includes(name));
      if (absent.length > 0) return `The cgroup ${folder} has no controllers for ${absent.join(", ")}.`;
      for (const file of [".", "cgroup.procs", "cgroup.subtree_control"])
        accessSync(join(folder, file), constants.W_OK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return `There is no cgroup of version 2 at ${folder}.`;
      return `The server may not divide its cgroup ${folder}.`;
    }
    if (!isMoved && !this.#isAlone(folder)) return `The server shares its cgroup ${folder} with other programs.`;
    this.#folder = folder;
    return undefined;
  }

  /** Whether all processes of a cgroup are of this server, which has a process group of its own. */
  #isAlone(folder: string): boolean {
    const groupOf = (pid: string | number) => {
      const text = this.#read(`${pid}/stat`);
      return text.slice(text.lastIndexOf(")") + 2).split(" ")[2];
    };
    const own = groupOf("self");
    return processesOf(folder).every((pid) => groupOf(pid) === own);
  }

  #divide(): void {
    if (this.#isDivided) return;
    const leaf = join(this.#folder, LEAF);
    attempt("EEXIST", () => this.#system.make(leaf));
    const controllers = NEEDED.map((name) => `+${name}`).join(" ");
    // The kernel refuses it as long as there are processes in the way.
    const enable = () => this.#write("cgroup.subtree_control", controllers);
    for (let moves = 0; !attempt("EBUSY", enable); moves += 1) {
      if (moves === MOVES) throw new Error("it still has processes of its own");
      for (const pid of processesOf(this.#folder)) {
        // A process may have ended in the meantime.
        attempt("ESRCH", () => this.#write(`${LEAF}/cgroup.procs`, String(pid)));
      }
    }
    this.#isDivided = true;
    this.#removeLeft(leaf);
  }

  #write(file: string, text: string): void {
    this.#system.write(join(this.#folder, file), text);
  }

  /** Removes the cgroups of server processes that were killed. `leaf`: where those are that run. */
  #removeLeft(leaf: string): void {
    const names = readdirSync(this.#folder);
    // They are read after the names: another process enters the leaf before it makes a cgroup.
    const servers = processesOf(leaf);
    for (const name of names) {
      const [, pid] = /^sandbox-(\d+)-\d+$/.exec(name) ?? [];
      if (pid === undefined || Number(pid) === this.#system.pid || servers.includes(Number(pid))) continue;
      void removeCgroup(this.#system, join(this.#folder, name));
    }
  }

  /** Returns the text of a file in /proc; nothing if the process has ended. */
  #read(path: string): string {
    try {
      return readFileSync(join(this.#system.proc, path), "utf8");
    } catch {
      return "";
    }
  }
}

/** The cgroup of one sandbox. */
export class SandboxCgroup {
  /** The file at which a process enters the cgroup by writing a zero. The caller closes it. */
  readonly entrance: number;
  readonly #system: CgroupSystem;
  readonly #folder: string;
  readonly #memory: number;
  /** Set once it has ended. */
  #wasOutOfMemory = false;

  /** @throws {Error} if the kernel refuses it */
  constructor(system: CgroupSystem, folder: string, { memory, tasks, cores }: CgroupLimits) {
    this.#system = system;
    this.#folder = folder;
    this.#memory = memory;
    system.make(folder);
    try {
      // memory.high is not set: without swap it slows a module down to a halt, and the requests
      // that it should end before a fresh process takes over with it.
      this.#set("memory.max", String(memory));
      this.#set("memory.oom.group", "1");
      this.#set("pids.max", String(tasks));
      this.#set("cpu.max", `${Math.round(cores * PERIOD)} ${PERIOD}`);
      // Otherwise a module could use all the swap of the machine in addition. A kernel that does
      // not count swap has no such file.
      attempt("ENOENT", () => this.#set("memory.swap.max", "0"));
      this.entrance = openSync(join(folder, "cgroup.procs"), constants.O_WRONLY);
    } catch (error) {
      system.remove(folder);
      throw error;
    }
  }

  /** The bytes of memory at which the kernel has killed it; undefined if it has not. */
  get killedAt(): number | undefined {
    return this.#wasOutOfMemory ? this.#memory : undefined;
  }

  /** Kills what is left in it, and removes it. */
  async end(): Promise<void> {
    try {
      const events = readFileSync(join(this.#folder, "memory.events"), "utf8");
      // A machine without memory kills processes as well, whatever their limits are.
      this.#wasOutOfMemory = /^oom [1-9]/m.test(events) && /^oom_kill [1-9]/m.test(events);
    } catch {
      // It has gone.
    }
    await removeCgroup(this.#system, this.#folder);
  }

  #set(file: string, value: string): void {
    this.#system.write(join(this.#folder, file), value);
  }
}

/** Never fails: the next start tries it again. */
async function removeCgroup(system: CgroupSystem, folder: string): Promise<void> {
  for (let count = 0; count < REMOVALS; count += 1) {
    try {
      system.write(join(folder, "cgroup.kill"), "1");
    } catch {
      // Linux before 5.14 has no such file. The group of the process is killed in any case.
    }
    try {
      system.remove(folder);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    }
    // The kernel removes it once the last process has gone.
    await sleep(REMOVAL_MS, undefined, { ref: false });
  }
}

function processesOf(folder: string): readonly number[] {
  return readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
}

/** Returns whether it succeeds. @throws {Error} if it fails with another code */
function attempt(code: string, act: () => void): boolean {
  try {
    act();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== code) throw error;
    return false;
  }
}
