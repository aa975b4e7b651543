/**
 * Hosts of one store work for minutes while engines fail and come back: what they answer, and what
 * is left of it in them.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import { Random } from "../fuzz/random.ts";
import { auditStore } from "./audit.ts";
import type { Disturbance } from "./disturbances.ts";
import { History } from "./history.ts";
import { Hosts } from "./hosts.ts";
import { grown, line } from "./leaks/growth.ts";
import { type Figures, GIVING_BACK, heldBy, StoreFigures } from "./leaks/held.ts";
import { type Leak, leaking } from "./leaks/plant.ts";
import { disturbed, Load } from "./load.ts";
import { EMPTY_DIRECTORY, observe } from "./observe.ts";
import { Pace } from "./pace.ts";
import { Works } from "./works.ts";

export interface ChurnOptions {
  readonly folder: string;
  readonly store: StoreSettings;
  readonly seed: number;
  readonly minutes: number;
  readonly hosts: number;
  readonly next: (random: Random) => Disturbance;
  readonly report: (line: string) => void;
  /** Hosts, by name, that leak on purpose: `LEAK_RATE` MiB in a minute. */
  readonly leaks?: Readonly<Record<string, Leak>>;
}

export interface ChurnResult {
  readonly acknowledged: number;
  readonly refused: number;
  /**
   * Of those, while no engine was disturbed: the machine was too busy for the database to answer in
   * time.
   */
  readonly slowed: number;
  /** What is wrong with answers, and with what was left in the store. */
  readonly wrong: readonly string[];
  /** What grew. */
  readonly grown: readonly string[];
}

const MINUTE_MS = 60_000;
/** Calls that are made while an engine is away. */
const CALLS = 12;
/** What is kept of the log, as the time is short. */
const KEPT_COMMITS = 500;
const KEPT_SECONDS = 30;
/** MiB in a minute: of 1.4 GiB a day an operator should hear. */
const LEAK_RATE = 1;
/**
 * Hosts keep connections to the object store for 4 s, and buffers of what they fetch for 5 s, after
 * they were last used.
 */
const LET_GO_MS = 6000;

export async function churnHosts(options: ChurnOptions): Promise<ChurnResult> {
  const { folder, store, seed, minutes, report, leaks = {} } = options;
  const random = new Random(seed);
  const history = new History();
  const hosts = new Hosts(folder, store, {
    flags: [`--import=${new URL("leaks/tell.ts", import.meta.url)}`],
    env: (name) => ({ ...GIVING_BACK, ...(leaks[name] && leaking(leaks[name], LEAK_RATE)) }),
  });
  using pace = new Pace(store.sql);
  const works = new Works(history, random, { hosts: () => hosts.all, collecting: true, pace });
  await using figures = new StoreFigures(store);
  const looks = new Map<string, Figures[]>();
  const look = (who: string, found: Figures, minute: number) => {
    looks.set(who, [...(looks.get(who) ?? []), found]);
    report(`minute ${minute}, ${who}: ${line(found)}`);
  };
  try {
    await hosts.startAll(options.hosts);
    await works.begin(random.pick(hosts.all));
    history.settle(new Map(hosts.all.map(({ name }) => [`name ${name}`, `/ipfs/${EMPTY_DIRECTORY}`])));
    const begin = performance.now();
    for (let minute = 1; minute <= minutes && history.wrong.length === 0; minute += 1) {
      await using load = new Load(works, history, Number.POSITIVE_INFINITY);
      for (const host of hosts.all) load.on(host);
      const disturbance = options.next(random);
      await disturbed(disturbance, CALLS, { works, load, hosts: hosts.all });
      await sleep(Math.max(0, begin + minute * MINUTE_MS - performance.now()));
      await load[Symbol.asyncDispose]();
      works.disturbed = false;
      await observe(hosts.all, works, history);
      await figures.trim(KEPT_COMMITS, KEPT_SECONDS);
      report(
        `minute ${minute}, ${disturbance.name}: ${history.acknowledged} changes, ${works.refused} refused, ${history.wrong.length} wrong`,
      );
      await sleep(LET_GO_MS);
      for (const { name, server } of hosts.all) look(name, await heldBy(server.pid, hosts.folderOf(name)), minute);
      look("the store", await figures.all(), minute);
    }
  } finally {
    await hosts[Symbol.asyncDispose]();
  }
  const { acknowledged, wrong } = history;
  const { faults } = wrong.length === 0 ? await auditStore(folder, store) : { faults: [] };
  return {
    acknowledged,
    refused: works.refused,
    slowed: works.slowed,
    wrong: [...wrong, ...faults],
    grown: [...looks].flatMap(([who, found]) => grown(who, found)),
  };
}
