/**
 * Hosts of one store work for minutes while engines fail and recover. Checks their responses, and
 * what is left in the engines.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { StoreSettings } from "#test/support/engines/shared_store.ts";
import { Random } from "../fuzz/random.ts";
import { auditStore } from "./audit.ts";
import type { Disturbance } from "./disturbances.ts";
import { History } from "./history.ts";
import { Hosts } from "./hosts.ts";
import { grown, line } from "./leaks/growth.ts";
import { type Leak, leaking } from "./leaks/plant.ts";
import { GIVING_BACK, StoreUsage, type Usage, usageOf } from "./leaks/usage.ts";
import { disturbed, Load } from "./load.ts";
import { EMPTY_DIRECTORY, observe } from "./observe.ts";
import { Pace } from "./pace.ts";
import { Works } from "./works.ts";

export interface EngineChurnOptions {
  readonly folder: string;
  readonly store: StoreSettings;
  readonly seed: number;
  readonly minutes: number;
  readonly hosts: number;
  readonly next: (random: Random) => Disturbance;
  readonly report: (line: string) => void;
  /** Hosts, by name, that leak `LEAK_RATE` MiB per minute on purpose. */
  readonly leaks?: Readonly<Record<string, Leak>>;
}

export interface ChurnResult {
  readonly acknowledged: number;
  readonly refused: number;
  /**
   * Rejected calls while no engine was disturbed: the machine was too busy for the database to
   * respond in time.
   */
  readonly slowed: number;
  /** Wrong responses, and wrong contents of the store. */
  readonly wrong: readonly string[];
  /** Resources that grew. */
  readonly grown: readonly string[];
}

const MINUTE_MS = 60_000;
/** Number of calls while an engine is unavailable. */
const CALLS = 12;
/** Commits and seconds of the log that are retained. They are low, because the run is short. */
const RETAINED_COMMITS = 500;
const RETAINED_SECONDS = 30;
/** MiB per minute, or 1.4 GiB per day: an operator should be warned of that. */
const LEAK_RATE = 1;
/**
 * Hosts close connections to the object store 4 s after their last use, and free buffers of fetched
 * objects after 5 s.
 */
const LET_GO_MS = 6000;

export async function churnHosts(options: EngineChurnOptions): Promise<ChurnResult> {
  const { folder, store, seed, minutes, report, leaks = {} } = options;
  const random = new Random(seed);
  const history = new History();
  const hosts = new Hosts(folder, store, {
    flags: [`--import=${new URL("leaks/report_usage.ts", import.meta.url)}`],
    env: (name) => ({ ...GIVING_BACK, ...(leaks[name] && leaking(leaks[name], LEAK_RATE)) }),
  });
  using pace = new Pace(store.sql);
  const works = new Works(history, random, { hosts: () => hosts.all, collecting: true, pace });
  await using usage = new StoreUsage(store);
  const looks = new Map<string, Usage[]>();
  const look = (who: string, found: Usage, minute: number) => {
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
      await usage.trim(RETAINED_COMMITS, RETAINED_SECONDS);
      report(
        `minute ${minute}, ${disturbance.name}: ${history.acknowledged} changes, ${works.refused} refused, ${history.wrong.length} wrong`,
      );
      await sleep(LET_GO_MS);
      for (const { name, server } of hosts.all) look(name, await usageOf(server.pid, hosts.folderOf(name)), minute);
      look("the store", await usage.all(), minute);
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
