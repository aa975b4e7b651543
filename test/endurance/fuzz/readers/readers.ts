/**
 * Damaged inputs for everything that reads what comes from outside: each is read, or refused for a
 * reason.
 */
import { targets as readers } from "#test/endurance/fuzz/delay/delay.ts";
import type { Target } from "#test/endurance/fuzz/delay/target.ts";
import type { FuzzOptions } from "#test/endurance/fuzz/fuzz.ts";
import { damaged } from "#test/endurance/fuzz/node/material.ts";
import { Random } from "#test/endurance/fuzz/random.ts";
import { trips } from "./trips.ts";
import { Watchdog } from "./watchdog.ts";

export interface ReadersSummary {
  readonly seed: number;
  /** Inputs that were read to their end. */
  readonly taken: number;
  readonly refused: number;
  /** Each names the input, so that it can be repeated. */
  readonly failures: readonly string[];
}

export const targets: readonly Target[] = [...readers, ...trips];

/** Small enough that many are read, large enough for several pieces of everything. */
const sizes = [2, 20, 200, 600];
const inputsPerTurn = 200;
const enoughFailures = 20;

/** One input after the other: what it is follows from its number and the seed alone. */
export async function fuzzReaders({
  seconds,
  seed,
  from = 0,
  count = Number.POSITIVE_INFINITY,
}: FuzzOptions): Promise<ReadersSummary> {
  const failures: string[] = [];
  let taken = 0;
  let refused = 0;
  let number = from;
  const crash = (error: unknown) =>
    failures.push(`uncaught near input ${number}: ${error instanceof Error ? error.stack : error}`);
  process.on("uncaughtException", crash).on("unhandledRejection", crash);
  const watchdog = new Watchdog();
  const deadline = performance.now() + seconds * 1000;
  try {
    for (; number < from + count && failures.length < enoughFailures; number += 1) {
      if (number % inputsPerTurn === 0) {
        await new Promise(setImmediate);
        if (performance.now() >= deadline) break;
      }
      watchdog.mark(number);
      const random = new Random(seed + number);
      const target = random.pick(targets);
      const input = inputOf(target, random);
      try {
        await target.read(input);
        taken += 1;
      } catch (error) {
        refused += 1;
        if (isDefect(error))
          failures.push(`input ${number}, ${target.name}, ${shown(input)}: ${(error as Error).stack}`);
      }
    }
    await new Promise(setImmediate);
  } finally {
    await watchdog.stop();
    process.removeListener("uncaughtException", crash).removeListener("unhandledRejection", crash);
  }
  return { seed, taken, refused, failures };
}

/** One or two shapes of the target's inputs, behind each other, and damaged. */
function inputOf(target: Target, random: Random): unknown {
  const make = () =>
    target.make(random.pick(target.shapes), Math.min(target.most, 2 + random.below(random.pick(sizes))));
  const input = make();
  if (typeof input !== "string" && !(input instanceof Uint8Array)) return input;
  const more = random.chance(0.2) ? make() : "";
  const parts = [input, more].map((part) => Buffer.from(part as string));
  const bytes = damaged(random, Buffer.concat(parts));
  return typeof input === "string" ? bytes.toString() : new Uint8Array(bytes);
}

/** An error that nobody here has thrown on purpose, or that says that a promise was not kept. */
function isDefect(error: unknown): boolean {
  if (!(error instanceof Error)) return typeof error !== "number";
  const { name, stack = "", message } = error;
  if (error.constructor.name === "AssertionError" || /call stack|out of memory/.test(message)) return true;
  if (!/^(TypeError|ReferenceError|RangeError)$/.test(name)) return false;
  // Libraries refuse inputs with these, too.
  const place = stack.split("\n").find((line) => /^\s+at .*\.[jt]s:\d+/.test(line) && !line.includes("node:"));
  return place === undefined || !place.includes("/node_modules/");
}

const shown = (input: unknown): string =>
  input instanceof Uint8Array ? `0x${Buffer.from(input).toString("hex")}` : JSON.stringify(input);
