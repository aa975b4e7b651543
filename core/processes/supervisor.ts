/**
 * Keeps the processes of one server: starts them, puts another in the place of one that ends, and keeps their listening
 * sockets, so that whoever connects meanwhile waits in the queue of the system and is lost by nobody's end.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FollowStep } from "../host.ts";
import type { LogLevel } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { KeptPorts } from "./kept_ports.ts";
import type { DoorFacts, KnownDoor, PortFacts, Shared, WorkerState } from "./messages.ts";
import { PassedConnections } from "./passed_connections.ts";
import { type Ended, WorkerProcess, type WorkerProcessDeps } from "./process.ts";
import { Steps } from "./steps.ts";

/** Milliseconds before another process takes the place of one that ended soon after its start: doubled each time. */
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 30_000;
/** One that has run for so long has not ended soon. */
const STEADY_MS = 60_000;

export interface SupervisorDeps extends Omit<WorkerProcessDeps, "handlers" | "passed" | "printed"> {
  readonly count: number;
  /** Seconds in which a process has to end that was asked to. */
  readonly stopTimeout: number;
  /** Takes a line of the log that the first process cannot take. */
  log(level: LogLevel, text: string): void;
  print(stream: "stdout" | "stderr", text: string): void;
  /** All serve. */
  started(): Promise<void> | void;
}

/** A place that one process after the other has. */
interface Slot {
  readonly number: number;
  process: WorkerProcess | undefined;
  began: number;
  /** Processes that ended soon, one after the other. */
  failures: number;
  pause: NodeJS.Timeout | undefined;
}

export class Supervisor {
  readonly #deps: SupervisorDeps;
  readonly #slots: readonly Slot[];
  readonly #folder = mkdtempSync(join(tmpdir(), "modhost-"));
  readonly #ports = new KeptPorts();
  readonly #steps = new Steps();
  /** Connections on their way from one process to another. */
  readonly #passed = new PassedConnections((number) => {
    const process = this.#slots[number - 1]?.process;
    return process?.isRunning === true ? process.link : undefined;
  });
  /** The latest process of each number that has served. */
  readonly #doors = new Map<number, KnownDoor>();
  readonly #over = Promise.withResolvers<void>();
  #shared: Shared | undefined;
  #isStopping = false;
  #hasStarted = false;
  /** The one that stops it. */
  signal: string | undefined;
  /** With which code the first process ended the server. */
  code = 0;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    this.#slots = Array.from({ length: deps.count }, (_, at) => {
      return { number: at + 1, process: undefined, began: 0, failures: 0, pause: undefined };
    });
  }

  /** Resolves when the server has ended by itself. */
  get ended(): Promise<void> {
    return this.#over.promise;
  }

  async start(): Promise<void> {
    const [first, ...others] = this.#slots as [Slot, ...Slot[]];
    try {
      await this.#begin(first);
    } catch {
      return; // It has told why, and the server has ended with it.
    }
    this.#hasStarted = true;
    await Promise.allSettled(others.map((slot) => this.#begin(slot)));
    if (!this.#isStopping) await this.#deps.started();
  }

  /** The others first: what they have under way may need the first. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const [first, ...others] = this.#slots as [Slot, ...Slot[]];
    for (const { pause } of this.#slots) clearTimeout(pause);
    const end = ({ process }: Slot) => process?.stop(this.#deps.stopTimeout, this.signal);
    await Promise.all(others.map(end));
    await end(first);
    this.#ports.close();
    this.#passed.close();
    rmSync(this.#folder, { recursive: true, force: true });
    this.#over.resolve();
  }

  /** Ends all at once. */
  kill(): void {
    this.#isStopping = true;
    for (const { process } of this.#slots) process?.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Has the first process do something that it passes on to the others. */
  async ask(what: "reload" | "reopen"): Promise<void> {
    await this.#first?.channel.call(what).catch((error: unknown) => this.#log("error", reasonOf(error)));
  }

  report(error: unknown): void {
    this.#log("error", `The supervisor: ${error instanceof Error ? error.stack : error}`);
  }

  get #first(): WorkerProcess | undefined {
    return this.#slots[0]?.process;
  }

  /** The processes beside the first, in order. */
  #others(): WorkerProcess[] {
    return this.#slots.slice(1).flatMap(({ process }) => (process?.isRunning === true ? [process] : []));
  }

  async #begin(slot: Slot): Promise<void> {
    const { number } = slot;
    const child = new WorkerProcess(number, {
      ...this.#deps,
      sockets: number === 1 ? this.#deps.sockets : [],
      handlers: (from) => this.#handlers(from),
      passed: (handle, head, to) => this.#passed.take(handle, head, to),
      printed: (stream, text) => this.#deps.print(stream, text),
    });
    slot.process = child;
    slot.began = performance.now();
    void child.ended.then((ended) => this.#ended(slot, child, ended));
    const held = number === 1 ? this.#ports.giveAll(child.link) : [];
    const { count } = this.#deps;
    await child.begin(() => {
      const shared = number === 1 ? undefined : this.#shared;
      const doors = [...this.#doors.values()];
      return { number, count, folder: this.#folder, steps: this.#steps.all(), held, shared, doors };
    });
    this.#passed.flush(number);
    if (number > 1) await this.#catchUp(child);
  }

  /** What was done while a process began, which may have been too late for it to begin with. */
  async #catchUp(child: WorkerProcess): Promise<void> {
    try {
      for (const step of child.missed.splice(0)) await child.channel.call("step", step);
    } catch (error) {
      this.#log("warn", `Process ${child.number} is replaced: ${reasonOf(error)}`);
      await this.#replace(child);
    }
  }

  /** Ends one in whose place another one begins; nothing more is handed over to it. */
  async #replace(process: WorkerProcess): Promise<void> {
    this.#shut(process.number);
    await process.stop(this.#deps.stopTimeout);
  }

  #shut(number: number): void {
    const door = this.#doors.get(number);
    if (door?.isOpen === true) this.#tellDoor({ ...door, isOpen: false });
  }

  #tellDoor(door: KnownDoor): void {
    this.#doors.set(door.number, door);
    const doors = [...this.#doors.values()];
    for (const { process } of this.#slots) process?.channel.tell("doors", doors);
  }

  #ended(slot: Slot, child: WorkerProcess, { how, code }: Ended): void {
    if (slot.process !== child) return;
    slot.process = undefined;
    if (this.#isStopping) return;
    this.#shut(slot.number);
    const isFirst = slot.number === 1;
    if (!isFirst) this.#first?.channel.tell("left", slot.number);
    // A server that does not start, or that was told to stop, ends with its first process.
    if (isFirst && (!this.#hasStarted || (code === 0 && !child.isLeaving))) {
      this.code = code ?? 1;
      this.#over.resolve();
      return;
    }
    slot.failures = performance.now() - slot.began < STEADY_MS ? slot.failures + 1 : 0;
    const pause = slot.failures < 2 ? 0 : Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (slot.failures - 2));
    const later = pause === 0 ? "another one takes its place" : `another one is tried in ${pause / 1000} s`;
    if (!child.isLeaving)
      this.#log("error", `Process ${slot.number} of ${this.#deps.count} (${child.pid}) ${how}: ${later}`);
    slot.pause = setTimeout(() => void this.#begin(slot).catch(() => undefined), child.isLeaving ? 0 : pause);
  }

  /** What a process may ask. */
  #handlers(from: WorkerProcess): Readonly<Record<string, (...values: never[]) => unknown>> {
    const tellOthers = (name: string, ...values: unknown[]) => {
      for (const process of this.#others()) process.channel.tell(name, ...values);
    };
    const common = {
      log: (line: string) => this.#relay(line, from.number),
      door: (door: DoorFacts) => this.#tellDoor({ ...door, isOpen: true }),
    };
    if (from.number > 1) {
      return {
        ...common,
        sockets: (service: string, known: readonly string[]) => this.#ports.give(from.link, service, known),
        state: (state: WorkerState, counted: readonly unknown[]) =>
          this.#first?.channel.tell("sibling", state, counted),
      };
    }
    return {
      ...common,
      ports: (ports: readonly PortFacts[]) => {
        for (const service of this.#ports.replace(ports, from.link)) tellOthers("ports", service);
      },
      shared: (shared: Shared) => {
        this.#shared = shared;
        for (const { process, number } of this.#slots) if (number > 1) process?.channel.tell("shared", shared);
      },
      follow: (step: FollowStep) => this.#follow(step),
      gather: async (what: string) => {
        const answers = await Promise.allSettled(this.#others().map(({ channel }) => channel.call(what)));
        return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
      },
    };
  }

  /** One process after the other; one that cannot follow is replaced by one that begins with what holds now. */
  async #follow(step: FollowStep): Promise<readonly string[]> {
    this.#steps.add(step);
    const told: string[] = [];
    for (const { process, number } of this.#slots) {
      if (number > 1 && process?.isRunning === false) process.missed.push(step);
    }
    for (const process of this.#others()) {
      try {
        await process.channel.call("step", step);
        told.push(`process ${process.number} has followed`);
      } catch (error) {
        if (!process.isRunning) continue; // The next one begins with it.
        told.push(`process ${process.number} is replaced: ${reasonOf(error)}`);
        await this.#replace(process);
      }
    }
    return told;
  }

  #relay(line: string, from: number): void {
    const first = this.#first;
    if (first?.isRunning === true) first.channel.tell("log", line, from);
    else this.#deps.print("stderr", line);
  }

  #log(level: LogLevel, msg: string): void {
    const first = this.#first;
    if (first?.isRunning !== true) this.#deps.log(level, msg);
    else first.channel.tell("log", JSON.stringify({ level, time: new Date().toISOString(), msg }), undefined);
  }
}
