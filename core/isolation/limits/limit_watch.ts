/**
 * Holds a sandboxed process to its limits, by what the kernel says that it uses. The kernel itself
 * enforces what it can enforce for one process (`../policy.ts`).
 */
import type { ModuleLimits } from "../../permissions/index.ts";
import { sizeText } from "../../util/size.ts";
import { CpuBudget } from "./cpu_budget.ts";
import { diskUse, unnamedUse } from "./disk_usage.ts";
import { GroupTime } from "./group_time.ts";
import { othersOfGroup, type ProcessUse, useOf } from "./process_usage.ts";
import type { RequestAccount } from "./request_account.ts";

/**
 * Milliseconds between two looks at a process: while it uses its whole share of the processor,
 * while it works, and while it does not.
 */
const TIGHT_LOOK_MS = 50;
const LOOK_MS = 250;
const IDLE_LOOK_MS = 1000;

/** The share of a limit from which a fresh process is started. */
const SOFT = 0.8;

/** Milliseconds between two looks at the disk, at least. */
const DISK_MS = 2000;

/** The pause after a look at the disk, in multiples of the time that the look took. */
const DISK_PAUSES = 20;

export interface LimitedProcess {
  /** The id of the module's process; undefined before it has begun. */
  pid(): number | undefined;
  /** Whether it may start programs. */
  readonly runs: boolean;
  /** The folders with its own files. */
  readonly folders: readonly string[];
  readonly requests: RequestAccount;
}

export interface LimitEvents {
  /** The process must be killed. */
  exceeded(reason: string): void;
  /** A fresh process should take over. Called at each look. */
  nearly(reason: string): void;
  /** The operator should know. Called at each look. */
  noticed(reason: string): void;
}

export class LimitWatch {
  readonly #limits: ModuleLimits;
  readonly #process: LimitedProcess;
  readonly #events: LimitEvents;
  readonly #cpu: CpuBudget;
  readonly #time = new GroupTime();
  /** Bytes on disk at the first look: a process that begins above the limit may not add to it. */
  #firstDisk: number | undefined;
  #timers: (NodeJS.Timeout | undefined)[] = [];
  #isOver = false;

  constructor(limits: ModuleLimits, limited: LimitedProcess, events: LimitEvents) {
    this.#limits = limits;
    this.#process = limited;
    this.#events = events;
    this.#cpu = new CpuBudget(limits.cpu);
    this.#plan(0, LOOK_MS, () => this.#look());
    this.#plan(1, 0, () => this.#lookAtDisk());
  }

  stop(): void {
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#cpu.stop();
  }

  #plan(timer: number, ms: number, look: () => Promise<void>): void {
    if (!this.#isOver) this.#timers[timer] = setTimeout(() => void look(), ms).unref();
  }

  async #look(): Promise<void> {
    const pid = this.#process.pid();
    const own = pid === undefined ? undefined : useOf(pid);
    if (pid === undefined || own === undefined) {
      this.#plan(0, LOOK_MS, () => this.#look());
      return;
    }
    const others = this.#process.runs ? await othersOfGroup(own.group, pid) : [];
    if (this.#isOver) return;
    const uses = [own, ...others.flatMap((other) => useOf(other) ?? [])];
    this.#checkProcesses(others.length);
    this.#checkMemory(uses.reduce((total, use) => total + use.memory, 0));
    const spent = this.#checkCpu(uses, own.group);
    const isActive = spent > 0 || this.#process.runs;
    const pause = this.#cpu.isTight ? TIGHT_LOOK_MS : isActive ? LOOK_MS : IDLE_LOOK_MS;
    this.#plan(0, pause, () => this.#look());
  }

  #checkProcesses(count: number): void {
    const { processes } = this.#limits;
    if (count > processes) this.#events.exceeded(`it ran ${count} programs, and limits.processes allows ${processes}`);
  }

  #checkMemory(bytes: number): void {
    const { memory } = this.#limits;
    if (bytes <= memory * SOFT) return;
    const text = `it used ${sizeText(bytes)} of memory, and limits.memory allows ${sizeText(memory)}`;
    if (bytes > memory) this.#events.exceeded(text);
    else this.#events.nearly(text);
  }

  /** Returns the seconds of processor time since the last look. */
  #checkCpu(uses: readonly ProcessUse[], group: number): number {
    const { cpu, request_cpu } = this.#limits;
    const spent = this.#time.add(uses);
    this.#cpu.spend(spent, group);
    if (this.#cpu.isExhausted) {
      const cores = cpu === 1 ? "1 core" : `${cpu} cores`;
      this.#events.noticed(`is slowed down: it uses more of the processor than limits.cpu allows (${cores})`);
    }
    const request = this.#process.requests.countCpu(spent);
    if (request > request_cpu) {
      const used = `${request.toFixed(1)} s of processor time`;
      this.#events.exceeded(`a request used ${used}, and limits.request_cpu allows ${request_cpu} s`);
    }
    return spent;
  }

  /** Returns the ids of the process and of the programs that it runs. */
  async #processes(): Promise<readonly number[]> {
    const pid = this.#process.pid();
    const own = pid === undefined ? undefined : useOf(pid);
    if (pid === undefined || own === undefined) return [];
    return [pid, ...(this.#process.runs ? await othersOfGroup(own.group, pid) : [])];
  }

  async #lookAtDisk(): Promise<void> {
    const begun = performance.now();
    const { disk } = this.#limits;
    const most = Math.max(disk, this.#firstDisk ?? 0);
    const enough = this.#firstDisk === undefined ? Number.POSITIVE_INFINITY : most;
    const named = await diskUse(this.#process.folders, enough).catch(() => undefined);
    if (named === undefined) {
      if (!this.#isOver) this.#events.exceeded("its folders are too deep to be measured for limits.disk");
      return;
    }
    const bytes = named + (await unnamedUse(await this.#processes()));
    if (this.#isOver) return;
    this.#firstDisk ??= bytes;
    const text = `it has ${sizeText(bytes)} on disk, and limits.disk allows ${sizeText(disk)}`;
    if (bytes > Math.max(disk, this.#firstDisk)) this.#events.exceeded(text);
    else if (bytes > disk) this.#events.noticed(`is over a limit and may write nothing more: ${text}`);
    else if (bytes > disk * SOFT) this.#events.noticed(`comes near a limit: ${text}`);
    const took = performance.now() - begun;
    this.#plan(1, Math.max(DISK_MS, DISK_PAUSES * took), () => this.#lookAtDisk());
  }
}
