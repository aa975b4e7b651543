/**
 * Kills hosts of one store at random moments while clients use all of them, and compares the
 * responses of all hosts.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import { Random } from "../fuzz/random.ts";
import { auditStore } from "./audit.ts";
import type { Disturbance } from "./disturbances.ts";
import { History } from "./history.ts";
import { Hosts } from "./hosts.ts";
import { disturbed, Load } from "./load.ts";
import { EMPTY_DIRECTORY, observe } from "./observe.ts";
import { Pace } from "./pace.ts";
import { PHASES, type Phase, Phases } from "./phases.ts";
import { Works } from "./works.ts";

export interface ScaleOptions {
  readonly folder: string;
  readonly store: StoreSettings;
  readonly seed: number;
  /** Number of cycles. Each kills one host, or disturbs an engine. */
  readonly cycles: number;
  readonly hosts?: number;
  /**
   * Whether garbage is collected, too. A collection waits until the lease of a killed host has
   * expired.
   */
  readonly collecting?: boolean;
  /**
   * Calls per cycle, after which its clients end. Without it, they continue while a host starts.
   */
  readonly calls?: number;
  /** Returns the disturbance of a cycle, or undefined for a kill. */
  readonly disturb?: (cycle: number) => Disturbance | undefined;
  readonly report?: (line: string) => void;
}

export interface ScaleResult {
  readonly acknowledged: number;
  readonly refused: number;
  /**
   * Rejected calls while no engine was disturbed: the machine was too busy for the database to
   * respond in time.
   */
  readonly slowed: number;
  /**
   * Milliseconds of the slowest response of the database, including the time in which it was
   * unavailable.
   */
  readonly slowest: number;
  readonly kills: number;
  /** Number of hosts that were killed in each phase. A host may be in several phases or in none. */
  readonly phases: Readonly<Record<Phase, number>>;
  /** Number of disturbances of each kind. */
  readonly faults: Readonly<Record<string, number>>;
  /** Objects that killed hosts had left behind, and that a sweep at the end has found. */
  readonly orphans: number;
  /** Number of successful calls of each command. */
  readonly counts: Readonly<Record<string, number>>;
  readonly wrong: readonly string[];
}

/**
 * Minimum number of successful changes in a part of a cycle: before the host is lost, during that
 * time, and afterwards.
 */
const CHANGES = 12;
/** Maximum milliseconds from the beginning of the phase to the kill. */
const LATER_MS = 40;

export async function scaleCycles(options: ScaleOptions): Promise<ScaleResult> {
  const { folder, store, seed, cycles, hosts: count = 3, disturb = () => undefined, report } = options;
  const { collecting = true, calls = Number.POSITIVE_INFINITY } = options;
  const history = new History();
  const random = new Random(seed);
  const hosts = new Hosts(folder, store);
  using pace = new Pace(store.sql);
  const works = new Works(history, random, { hosts: () => hosts.all, collecting, pace });
  let kills = 0;
  const phases = { add: 0, commit: 0, gc: 0, merge: 0 };
  using watch = new Phases(store.sql);
  const disturbances: Record<string, number> = {};
  try {
    await hosts.startAll(count);
    await works.begin(random.pick(hosts.all));
    // A new repo publishes the empty directory.
    history.settle(new Map(hosts.all.map(({ name }) => [`name ${name}`, `/ipfs/${EMPTY_DIRECTORY}`])));
    for (let cycle = 1; cycle <= cycles && history.wrong.length === 0; cycle += 1) {
      await using load = new Load(works, history, calls);
      for (const host of hosts.all) load.on(host);
      await load.changes(random.below(CHANGES) + 1);
      const disturbance = disturb(cycle);
      if (disturbance === undefined) {
        const victim = random.pick(hosts.all);
        const wanted = PHASES[kills % (collecting ? PHASES.length : 2)] as Phase;
        if (wanted === "gc" || wanted === "merge") load.collect(victim);
        await watch.reached(wanted, victim, () => (load.isIdle ? undefined : works.underWay(victim)));
        await sleep(random.below(LATER_MS));
        // The process is suspended while its phase is determined.
        process.kill(victim.server.pid, "SIGSTOP");
        for (const phase of await watch.of(victim, works.underWay(victim))) phases[phase] += 1;
        await hosts.kill(victim);
        kills += 1;
        await load.changes(CHANGES);
        load.on(await hosts.start(victim.name));
      } else {
        disturbances[disturbance.name] = (disturbances[disturbance.name] ?? 0) + 1;
        await disturbed(disturbance, CHANGES, { works, load, hosts: hosts.all });
      }
      await load.changes(CHANGES);
      await load[Symbol.asyncDispose]();
      works.disturbed = false;
      await observe(hosts.all, works, history);
      const { acknowledged, wrong } = history;
      report?.(
        `cycle ${cycle}${disturbance === undefined ? "" : `, ${disturbance.name}`}: ${acknowledged} changes, ${works.refused} rejected, ${wrong.length} wrong`,
      );
    }
  } finally {
    await hosts[Symbol.asyncDispose]();
  }
  // After a failure the engines are left unchanged.
  const { faults, orphans } = history.wrong.length === 0 ? await auditStore(folder, store) : { faults: [], orphans: 0 };
  const { acknowledged, wrong } = history;
  const { refused, slowed, counts } = works;
  const { slowest } = pace;
  return {
    acknowledged,
    refused,
    slowed,
    slowest,
    kills,
    phases,
    faults: disturbances,
    orphans,
    counts,
    wrong: [...wrong, ...faults],
  };
}
