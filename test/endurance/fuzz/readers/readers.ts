/**
 * Damages inputs for every reader of external input: each must be read, or rejected for a reason.
 */
import { targets as readers } from "#test/endurance/fuzz/delay/delay.ts";
import type { InputTarget } from "#test/endurance/fuzz/delay/target.ts";
import type { FuzzOptions } from "#test/endurance/fuzz/fuzz.ts";
import { damaged } from "#test/endurance/fuzz/node/material.ts";
import { Random } from "#test/endurance/fuzz/random.ts";
import { trips } from "./trips.ts";
import { Watchdog } from "./watchdog.ts";

export interface ReadersSummary {
  readonly seed: number;
  /** Number of inputs that were read to their end. */
  readonly taken: number;
  readonly refused: number;
  /** Each failure names the input, so that it can be repeated. */
  readonly failures: readonly string[];
}

export const targets: readonly InputTarget[] = [...readers, ...trips];

/** Small enough to read many, and large enough for several pieces of everything. */
const sizes = [2, 20, 200, 600];
const inputsPerTurn = 200;
const enoughFailures = 20;

/** Reads one input after the other. Its number and the seed alone determine an input. */
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

/** Joins one or two shapes of the target's inputs, and damages them. */
function inputOf(target: InputTarget, random: Random): unknown {
  const make = () =>
    target.make(random.pick(target.shapes), Math.min(target.most, 2 + random.below(random.pick(sizes))));
  const input = make();
  if (typeof input !== "string" && !(input instanceof Uint8Array)) return input;
  const more = random.chance(0.2) ? make() : "";
  const parts = [input, more].map((part) => Buffer.from(part as string));
  const bytes = damaged(random, Buffer.concat(parts));
  return typeof input === "string" ? bytes.toString() : new Uint8Array(bytes);
}

/** Returns whether an error was not thrown on purpose, or reports a broken promise. */
function isDefect(error: unknown): boolean {
  if (!(error instanceof Error)) return typeof error !== "number";
  const { name, stack = "", message } = error;
  if (error.constructor.name === "AssertionError" || /call stack|out of memory/.test(message)) return true;
  if (!/^(TypeError|ReferenceError|RangeError)$/.test(name)) return false;
  // Libraries reject inputs with these, too.
  const frame = stack.split("\n").find((line) => /^\s+at .*\.[jt]s:\d+/.test(line) && !line.includes("node:"));
  return frame === undefined || !frame.includes("/node_modules/");
}

const shown = (input: unknown): string =>
  input instanceof Uint8Array ? `0x${Buffer.from(input).toString("hex")}` : JSON.stringify(input);
