/** Kills hosts of one store at random moments while clients use all of them, and holds what each answers against the others. */
import { setTimeout as sleep } from "node:timers/promises";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import { eventually } from "#test/support/eventually.ts";
import { Random } from "../fuzz/random.ts";
import { auditStore } from "./audit.ts";
import type { Disturbance } from "./disturbances.ts";
import { History } from "./history.ts";
import { startHost } from "./hosts.ts";
import { EMPTY_DIRECTORY, observe } from "./observe.ts";
import { PHASES, type Phase, Phases } from "./phases.ts";
import { type Host, isGone, Works } from "./works.ts";

export interface ScaleOptions {
  readonly folder: string;
  readonly store: StoreSettings;
  readonly seed: number;
  /** Each kills one host, or disturbs an engine. */
  readonly cycles: number;
  readonly hosts?: number;
  /** Garbage is collected, too; a collection waits until the lease of a host that was killed is over. */
  readonly collecting?: boolean;
  /** Of a cycle, after which its clients end; without it they go on while a host starts. */
  readonly calls?: number;
  /** What happens in a cycle in place of a kill; undefined for a kill. */
  readonly disturb?: (cycle: number) => Disturbance | undefined;
  readonly report?: (line: string) => void;
}

export interface ScaleResult {
  readonly acknowledged: number;
  readonly refused: number;
  readonly kills: number;
  /** How many hosts were killed in each of these; in several at a time, or in none of them. */
  readonly phases: Readonly<Record<Phase, number>>;
  /** How often each disturbance took place. */
  readonly faults: Readonly<Record<string, number>>;
  /** Objects that killed hosts had left, and a sweep at the end has found. */
  readonly orphans: number;
  /** How often each command was answered with success. */
  readonly counts: Readonly<Record<string, number>>;
  readonly wrong: readonly string[];
}

const WORKERS_A_HOST = 2;
/** Changes that are answered in a part of a cycle at least: before the host is lost, while it is, and after. */
const CHANGES = 12;
/** Milliseconds from the beginning of what a host is killed in, at most. */
const LATER_MS = 40;

export async function scaleCycles(options: ScaleOptions): Promise<ScaleResult> {
  const { folder, store, seed, cycles, hosts: count = 3, disturb = () => undefined, report } = options;
  const { collecting = true, calls = Number.POSITIVE_INFINITY } = options;
  const history = new History();
  const random = new Random(seed);
  const hosts = new Map<string, Host>();
  const works = new Works(history, random, { hosts: () => [...hosts.values()], collecting });
  let kills = 0;
  const phases = { add: 0, commit: 0, gc: 0, merge: 0 };
  using watch = new Phases(store.sql);
  const disturbances: Record<string, number> = {};
  const start = async (name: string) => hosts.set(name, await startHost(folder, name, store));
  const names = Array.from({ length: count }, (_, at) => `host${at + 1}`);
  // Where the run is given up.
  const end = () => {
    for (const { server } of hosts.values()) void server.kill();
  };
  process.once("exit", end);
  try {
    await Promise.all(names.map(start));
    await works.begin(hosts.get(names[0] as string) as Host);
    // A new repo publishes it.
    history.settle(new Map(names.map((name) => [`name ${name}`, `/ipfs/${EMPTY_DIRECTORY}`])));
    for (let cycle = 1; cycle <= cycles && history.wrong.length === 0; cycle += 1) {
      await using load = new Load(works, history, calls);
      for (const host of hosts.values()) load.on(host);
      await load.changes(random.below(CHANGES) + 1);
      const disturbance = disturb(cycle);
      if (disturbance === undefined) {
        const victim = hosts.get(random.pick(names)) as Host;
        const wanted = PHASES[kills % (collecting ? PHASES.length : 2)] as Phase;
        if (wanted === "gc" || wanted === "merge") load.collect(victim);
        await watch.reached(wanted, victim, () => (load.isIdle ? undefined : works.underWay(victim)));
        await sleep(random.below(LATER_MS));
        // It goes no further while it is asked what it is at.
        process.kill(victim.server.pid, "SIGSTOP");
        for (const phase of await watch.of(victim, works.underWay(victim))) phases[phase] += 1;
        hosts.delete(victim.name);
        await victim.server.kill("SIGKILL");
        kills += 1;
        await load.changes(CHANGES);
        await start(victim.name);
        load.on(hosts.get(victim.name) as Host);
      } else {
        works.disturbed = true;
        disturbances[disturbance.name] = (disturbances[disturbance.name] ?? 0) + 1;
        await disturbance.begin();
        await load.made(CHANGES);
        await disturbance.end();
        await eventually("every host takes writes again", () => takesWrites([...hosts.values()]), { every: 100 });
      }
      await load.changes(CHANGES);
      await load[Symbol.asyncDispose]();
      works.disturbed = false;
      await observe([...hosts.values()], works, history);
      const { acknowledged, wrong } = history;
      report?.(
        `cycle ${cycle}${disturbance === undefined ? "" : `, ${disturbance.name}`}: ${acknowledged} changes, ${works.refused} refused, ${wrong.length} wrong`,
      );
    }
  } finally {
    await Promise.all([...hosts.values()].map(({ server }) => server.stop()));
    process.off("exit", end);
  }
  // After a failure the engines are as it left them.
  const { faults, orphans } = history.wrong.length === 0 ? await auditStore(folder, store) : { faults: [], orphans: 0 };
  const { acknowledged, wrong } = history;
  const { refused, counts } = works;
  return { acknowledged, refused, kills, phases, faults: disturbances, orphans, counts, wrong: [...wrong, ...faults] };
}

async function takesWrites(hosts: readonly Host[]): Promise<boolean> {
  const query = { arg: "/probe", parents: "true" };
  const answers = await Promise.all(hosts.map(({ server }) => server.call("files/mkdir", query)));
  await Promise.all(answers.map((answer) => answer.text()));
  return answers.every(({ ok }) => ok);
}

/** Clients of hosts, each with one call after the other until its host is gone or the load ends. */
class Load implements AsyncDisposable {
  readonly #works: Works;
  readonly #history: History;
  readonly #clients: Promise<void>[] = [];
  readonly #maxCalls: number;
  #calls = 0;
  #active = 0;
  #failure: unknown;
  #over = false;

  constructor(works: Works, history: History, maxCalls: number) {
    this.#maxCalls = maxCalls;
    this.#works = works;
    this.#history = history;
  }

  on(host: Host): void {
    for (let at = 0; at < WORKERS_A_HOST; at += 1) this.#clients.push(this.#work(host));
  }

  /** All clients have ended. */
  get isIdle(): boolean {
    return this.#active === 0;
  }

  /** One more call, beside those of the clients. */
  collect(host: Host): void {
    this.#clients.push(this.#count(() => this.#works.collect(host)));
  }

  /** Resolves when so many more changes were answered with success, or all clients have ended. */
  changes(count: number): Promise<void> {
    const until = this.#history.acknowledged + count;
    return this.#until(`${count} changes are answered`, () => this.#history.acknowledged >= until);
  }

  /** Resolves when so many more calls were made, or all clients have ended. */
  made(count: number): Promise<void> {
    const until = this.#calls + count;
    return this.#until(`${count} calls are made`, () => this.#calls >= until);
  }

  async #until(what: string, holds: () => boolean): Promise<void> {
    await eventually(what, () => {
      if (this.#failure !== undefined) throw this.#failure;
      return holds() || this.isIdle;
    });
  }

  #work(host: Host): Promise<void> {
    return this.#count(async () => {
      while (!this.#over && this.#calls < this.#maxCalls && this.#history.wrong.length === 0) {
        this.#calls += 1;
        await this.#works.any(host);
      }
    });
  }

  /** A client: what it fails with ends all of them, unless its host is gone. */
  async #count(client: () => Promise<void>): Promise<void> {
    this.#active += 1;
    try {
      await client();
    } catch (error) {
      if (!isGone(error)) this.#failure ??= error;
    } finally {
      this.#active -= 1;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over = true;
    await Promise.all(this.#clients);
    if (this.#failure !== undefined) throw this.#failure;
  }
}
