/** Numbers of the system calls that the launcher itself makes. */
import type { Architecture } from "../filter/filter.ts";

const numbers = {
  x64: {
    socket: 41,
    bind: 49,
    listen: 50,
    dup3: 292,
    close: 3,
    fcntl: 72,
    mmap: 9,
    prctl: 157,
    prlimit64: 302,
    capset: 126,
    setsid: 112,
    execve: 59,
    exit_group: 231,
  },
  arm64: {
    socket: 198,
    bind: 200,
    listen: 201,
    dup3: 24,
    close: 57,
    fcntl: 25,
    mmap: 222,
    prctl: 167,
    prlimit64: 261,
    capset: 91,
    setsid: 157,
    execve: 221,
    exit_group: 94,
  },
} as const satisfies Record<Architecture, Record<string, number>>;

export const isKnown = (architecture: string): architecture is Architecture => architecture in numbers;

/** The processor of this process, for which `isKnown` must have answered true. */
export const architecture = process.arch as Architecture;
export const calls = numbers[architecture];

/** The calls of Landlock have the same numbers everywhere. */
export const LANDLOCK = { createRuleset: 444, addRule: 445, restrictSelf: 446 } as const;
