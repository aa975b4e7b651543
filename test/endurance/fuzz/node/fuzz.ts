/**
 * Makes odd calls to a running node in this process: it must not crash, hang, leak memory, or
 * respond with a defect.
 */

import { LoopMeter } from "#test/endurance/fuzz/delay/meter.ts";
import type { FuzzOptions, WorstTurn } from "#test/endurance/fuzz/fuzz.ts";
import { Random } from "#test/endurance/fuzz/random.ts";
import { startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { bytesInUse, expectGrowthBelow } from "#test/unit/modules/mod_http_api/faults/lab.ts";
import { FuzzClient } from "./client.ts";
import { kinds } from "./kinds.ts";

export interface NodeFuzzSummary {
  readonly seed: number;
  /** Number of rounds by kind. */
  readonly rounds: Readonly<Record<string, number>>;
  readonly worst: WorstTurn;
  /** Each failure names the round, so that it can be repeated. */
  readonly failures: readonly string[];
}

/** Maximum growth of the used memory in bytes. */
const maxGrowth = 128 * 1024 * 1024;
const memoryEvery = 500;
const enoughFailures = 20;

const pot = Object.entries(kinds).flatMap(([name, [weight]]) => Array.from({ length: weight }, () => name));

const names = Object.keys(kinds);

/**
 * Plays one round after the other. The number, the seed and the previous rounds determine what a
 * round does.
 */
export async function fuzzNode({
  seconds,
  seed,
  from = 0,
  count = Number.POSITIVE_INFINITY,
}: FuzzOptions): Promise<NodeFuzzSummary> {
  const failures: string[] = [];
  const rounds: Record<string, number> = {};
  let round = from;
  const crash = (error: unknown) =>
    failures.push(`uncaught near round ${round}: ${error instanceof Error ? error.stack : error}`);
  process.on("uncaughtException", crash).on("unhandledRejection", crash);
  const host = await startRpc();
  const meter = new LoopMeter();
  let worst: WorstTurn = { ms: 0, during: "in no round" };
  let logged = 0;
  try {
    using client = new FuzzClient(host.http);
    const before = bytesInUse();
    const deadline = performance.now() + seconds * 1000;
    for (; round < from + count && failures.length < enoughFailures; round += 1) {
      // The first rounds are one of each kind, so that each is played even on a slow machine.
      const first = names[round];
      if (first === undefined && performance.now() >= deadline) break;
      const random = new Random(seed + round);
      const kind = first ?? random.pick(pot);
      rounds[kind] = (rounds[kind] ?? 0) + 1;
      const fail = (why: string) => failures.push(`round ${round}, ${kind}: ${why}`);
      try {
        await kinds[kind]?.[1](client, random);
      } catch (error) {
        fail(error instanceof Error ? error.message : String(error));
      }
      const ms = meter.take();
      if (ms > worst.ms) worst = { ms, during: `in round ${round}, ${kind}` };
      const log = host.log();
      const faulty = log
        .slice(logged)
        .split("\n")
        .find((line) => /command \S+ failed|uncaught/i.test(line));
      logged = log.length;
      if (faulty !== undefined) fail(`logged: ${faulty.slice(0, 1000)}`);
      if (round % memoryEvery === memoryEvery - 1) {
        await expectGrowthBelow(before, maxGrowth).catch(({ message }: Error) => fail(message));
      }
    }
    await client.call("repo/gc", [["timeout", "15s"]]);
    const { message } = await client.call("repo/verify");
    if (message !== undefined) failures.push(`at the end: ${message}`);
  } finally {
    meter.stop();
    await host.stop();
    await new Promise(setImmediate);
    process.removeListener("uncaughtException", crash).removeListener("unhandledRejection", crash);
  }
  return { seed, rounds, failures, worst };
}
