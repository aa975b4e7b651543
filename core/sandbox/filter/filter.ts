/** Builds the filter of one sandbox from the tables of system calls. */
import {
  ALLOW,
  ARCHITECTURE,
  and,
  fail,
  give,
  highHalf,
  type Instruction,
  ifAtLeast,
  ifEqual,
  KILL_PROCESS,
  load,
  lowHalf,
  NUMBER,
} from "./bpf.ts";
import {
  type Allowed,
  absentCalls,
  allowedCalls,
  type Condition,
  callsToRunPrograms,
  callsToSignalChildren,
  ignoredCalls,
  SELF,
  type SystemCall,
} from "./calls.ts";

export type Architecture = "x64" | "arm64";

/** AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64. */
const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7 };
/** Numbers from here on are calls of the x32 ABI. */
const X32 = 0x40000000;
/** Calls from here on are newer than this table. Libraries expect a kernel without them. */
const NEWER = 453;
const EPERM = 1;
const ENOSYS = 38;

export interface FilterOptions {
  readonly architecture: Architecture;
  /** Id of the process that is restricted, as itself sees it. */
  readonly pid: number;
  /** Whether the process may start programs. */
  readonly run: boolean;
  /** Whether a layer of the kernel keeps signals inside the sandbox. */
  readonly areSignalsInside: boolean;
  /**
   * Addresses of the three arguments of `execve`. The one call of the launcher passes them. They
   * are random, and the memory behind them is gone afterwards, so that no later call can repeat
   * them. They are not used if `run` is set.
   */
  readonly start: readonly [path: bigint, args: bigint, env: bigint];
}

/** Returns the program of the filter. */
export function filterOf(options: FilterOptions): readonly Instruction[] {
  const { architecture } = options;
  const program: Instruction[] = [
    load(ARCHITECTURE),
    ifEqual(AUDIT[architecture], 1, 0),
    give(KILL_PROCESS),
    load(NUMBER),
    ...(architecture === "x64" ? [ifAtLeast(X32, 0, 1), give(KILL_PROCESS)] : []),
  ];
  for (const { only, ...call } of callsFor(options)) {
    const number = call[architecture];
    if (number === undefined) continue;
    const body = only === undefined ? [give(ALLOW)] : choice(only, options.pid);
    program.push(ifEqual(number, 0, body.length), ...body);
  }
  for (const [calls, result] of [
    [ignoredCalls, fail(0)],
    [absentCalls, fail(ENOSYS)],
  ] as const)
    for (const call of calls) program.push(ifEqual(call[architecture] ?? NEWER, 0, 1), give(result));
  return [...program, ifAtLeast(NEWER, 0, 1), give(fail(ENOSYS)), give(fail(EPERM))];
}

function callsFor({ run, areSignalsInside, start }: FilterOptions): readonly SystemCall[] {
  const launch: SystemCall = {
    name: "execve",
    x64: 59,
    arm64: 221,
    why: "The launcher becomes the module's process.",
    only: [start.map((pointer, arg) => ({ arg, pointer }))],
  };
  const extra = run ? [...callsToRunPrograms, ...(areSignalsInside ? callsToSignalChildren : [])] : [launch];
  const names = new Set(extra.map(({ name }) => name));
  return [...allowedCalls.filter(({ name }) => !names.has(name)), ...extra];
}

/** Returns instructions that end the filter: allowed if one alternative holds, otherwise EPERM. */
function choice(alternatives: Allowed, pid: number): Instruction[] {
  return [...alternatives.flatMap((conditions) => all(conditions, pid)), give(fail(EPERM))];
}

/** Returns instructions that allow the call if all conditions hold, and else run into the next. */
function all(conditions: readonly Condition[], pid: number): Instruction[] {
  let rest: Instruction[] = [give(ALLOW)];
  for (const condition of conditions.toReversed()) rest = [...test(condition, pid, rest.length), ...rest];
  return rest;
}

/** Returns instructions that skip the following `distance` ones if the condition does not hold. */
function test({ arg, mask, is = 0, pointer }: Condition, pid: number, distance: number): Instruction[] {
  if (pointer !== undefined) {
    return [
      load(lowHalf(arg)),
      ifEqual(Number(pointer & 0xffffffffn), 0, distance + 2),
      load(highHalf(arg)),
      ifEqual(Number(pointer >> 32n), 0, distance),
    ];
  }
  const value = is === SELF ? pid : is;
  return [load(lowHalf(arg)), ...(mask === undefined ? [] : [and(mask)]), ifEqual(value, 0, distance)];
}
