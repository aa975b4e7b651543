/**
 * Tests of the filter of system calls. An interpreter runs its instructions, so that both
 * processors are tested on any machine.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ALLOW, fail, type Instruction, KILL_PROCESS } from "#core/sandbox/filter/bpf.ts";
import {
  absentCalls,
  allowedCalls,
  callsToRunPrograms,
  callsToSignalChildren,
  ignoredCalls,
  type SystemCall,
} from "#core/sandbox/filter/calls.ts";
import { type Architecture, type FilterOptions, filterOf } from "#core/sandbox/filter/filter.ts";

const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7 };
const PID = 4242;
const EPERM = fail(1);
const ENOSYS = fail(38);
const start = [0x1234567890n, 0x2345678901n, 0x3456789012n] as const;

function options(architecture: Architecture, more: Partial<FilterOptions> = {}): FilterOptions {
  return { architecture, pid: PID, run: false, areSignalsInside: true, start, ...more };
}

/** Runs a filter as the kernel does, and returns its result. */
function run(
  program: readonly Instruction[],
  audit: number,
  number: number,
  args: readonly (number | bigint)[] = [],
): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number, 0);
  data.writeUInt32LE(audit, 4);
  for (const [at, value] of args.entries()) data.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)), 16 + 8 * at);
  let accumulator = 0;
  for (let at = 0; ; at += 1) {
    const [code, ifTrue, ifFalse, value] = program[at]!;
    if (code === 0x20) accumulator = data.readUInt32LE(value);
    else if (code === 0x54) accumulator = (accumulator & value) >>> 0;
    else if (code === 0x15) at += accumulator === value >>> 0 ? ifTrue : ifFalse;
    else if (code === 0x35) at += accumulator >= value >>> 0 ? ifTrue : ifFalse;
    else if (code === 0x06) return value >>> 0;
    else assert.fail(`instruction ${code}`);
  }
}

for (const architecture of ["x64", "arm64"] as const) {
  describe(`the filter of ${architecture}`, () => {
    const program = filterOf(options(architecture));
    const numberOf = (name: string, calls: readonly SystemCall[] = allowedCalls) =>
      calls.find((call) => call.name === name)![architecture]!;
    const decide = (name: string, ...args: (number | bigint)[]) =>
      run(program, AUDIT[architecture], numberOf(name), args);

    test("a call of another processor ends the process", () => {
      const other = architecture === "x64" ? AUDIT.arm64 : AUDIT.x64;
      assert.equal(run(program, other, numberOf("read")), KILL_PROCESS >>> 0);
      assert.equal(run(program, 0x40000003, numberOf("read")), KILL_PROCESS >>> 0);
    });

    test("calls without conditions are allowed with any arguments", () => {
      for (const { name, only, ...call } of allowedCalls) {
        const number = call[architecture];
        if (only === undefined && number !== undefined) {
          assert.equal(run(program, AUDIT[architecture], number, [-1, -1, -1, -1, -1, -1]), ALLOW, name);
        }
      }
    });

    test("every number that no table names is refused, and newer ones do not exist", () => {
      const known = new Set([...allowedCalls, ...ignoredCalls, ...absentCalls].map((call) => call[architecture]));
      known.add(numberOf("execve", callsToRunPrograms));
      for (let number = 0; number < 453; number += 1) {
        if (!known.has(number)) assert.equal(run(program, AUDIT[architecture], number), EPERM, `${number}`);
      }
      assert.equal(run(program, AUDIT[architecture], 453), ENOSYS);
      assert.equal(run(program, AUDIT[architecture], 600), ENOSYS);
    });

    test("no number is in the tables twice", () => {
      const numbers = [...allowedCalls, ...ignoredCalls, ...absentCalls].flatMap((call) => call[architecture] ?? []);
      assert.equal(new Set(numbers).size, numbers.length);
    });

    test("absent calls fail as if the kernel lacked them, and ignored ones succeed", () => {
      assert.equal(run(program, AUDIT[architecture], numberOf("clone3", absentCalls)), ENOSYS);
      assert.equal(run(program, AUDIT[architecture], numberOf("fchmod", ignoredCalls)), fail(0));
    });

    test("a process id must be that of the process itself", () => {
      for (const name of ["kill", "tgkill", "prlimit64", "sched_getaffinity"]) {
        assert.equal(decide(name, PID), ALLOW, name);
        assert.equal(decide(name, PID + 1), EPERM, name);
        assert.equal(decide(name, -1), EPERM, name);
        assert.equal(decide(name, -PID), EPERM, name);
      }
      // The kernel ignores the upper half of an id, and so does the filter.
      assert.equal(decide("kill", 0x100000000n + BigInt(PID + 1)), EPERM);
      assert.equal(decide("tgkill", 0), EPERM);
    });

    test("a thread can be started, and a process or a namespace cannot", () => {
      const thread = 0x3d0f00;
      assert.equal(decide("clone", thread), ALLOW);
      assert.equal(decide("clone", 17), EPERM);
      for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
        assert.equal(decide("clone", thread | flag), EPERM, flag.toString(16));
    });

    test("a file cannot be emptied by opening it for reading, or for neither reading nor writing", () => {
      const O_TRUNC = 0x200;
      for (const [flags, expected] of [
        [0, ALLOW],
        [1, ALLOW],
        [2 | O_TRUNC, ALLOW],
        [1 | O_TRUNC, ALLOW],
        [O_TRUNC, EPERM],
        [3, EPERM],
        [3 | O_TRUNC, EPERM],
      ] as const)
        assert.equal(decide("openat", -100, 0, flags, 0o777), expected, `flags ${flags}`);
    });

    test("a file that is created cannot run with the rights of its owner or its group", () => {
      for (const mode of [0o4755, 0o2755, 0o6000])
        assert.equal(decide("openat", -100, 0, 0o101, mode), EPERM, `${mode}`);
      assert.equal(decide("openat", -100, 0, 0o101, 0o1777), ALLOW);
    });

    test("descriptors have no owners, leases and watches, and terminals take no input", () => {
      for (const command of [0, 1, 2, 3, 4, 6, 1030]) assert.equal(decide("fcntl", 3, command), ALLOW, `${command}`);
      for (const command of [8, 10, 15, 1024, 1026, 1031])
        assert.equal(decide("fcntl", 3, command), EPERM, `${command}`);
      assert.equal(decide("ioctl", 0, 0x5401), ALLOW);
      assert.equal(decide("ioctl", 0, 0x5412), EPERM);
      // The kernel ignores the upper half of the command.
      assert.equal(decide("ioctl", 0, 0x100005412n), EPERM);
    });

    test("the process that is at the other end of a socket cannot be reached by it", () => {
      assert.equal(decide("getsockopt", 3, 1, 3), ALLOW);
      for (const option of [17, 59, 77]) assert.equal(decide("getsockopt", 3, 1, option), EPERM, `${option}`);
      assert.equal(decide("getsockopt", 3, 0, 3), EPERM);
    });

    test("execve is possible once, by the addresses that only the launcher knows", () => {
      const number = numberOf("execve", callsToRunPrograms);
      const execve = (...args: readonly bigint[]) => run(program, AUDIT[architecture], number, args);
      assert.equal(execve(...start), ALLOW);
      for (const at of [0, 1, 2])
        for (const change of [1n, 1n << 32n])
          assert.equal(execve(...start.map((value, index) => (index === at ? value ^ change : value))), EPERM);
    });

    test("programs can be started only where they are granted, and namespaces never", () => {
      const granted = filterOf(options(architecture, { run: true }));
      const decideGranted = (name: string, ...args: (number | bigint)[]) =>
        run(granted, AUDIT[architecture], numberOf(name, callsToRunPrograms), args);
      assert.equal(decideGranted("execve", 1n, 2n, 3n), ALLOW);
      assert.equal(decideGranted("clone", 17), ALLOW);
      assert.equal(decideGranted("clone", 17 | 0x10000000), EPERM);
      assert.equal(decideGranted("socketpair", 1), ALLOW);
      assert.equal(decideGranted("socketpair", 2), EPERM);
      assert.equal(run(program, AUDIT[architecture], numberOf("socketpair", callsToRunPrograms), [1]), EPERM);
    });

    test("children can be signalled only where another layer keeps signals inside", () => {
      const number = numberOf("kill", callsToSignalChildren);
      for (const [areSignalsInside, expected] of [
        [true, ALLOW],
        [false, EPERM],
      ] as const) {
        const granted = filterOf(options(architecture, { run: true, areSignalsInside }));
        assert.equal(run(granted, AUDIT[architecture], number, [PID + 1]), expected);
      }
    });
  });
}

test("a call of the x32 ABI ends the process", () => {
  assert.equal(run(filterOf(options("x64")), AUDIT.x64, 0x40000000), KILL_PROCESS >>> 0);
});

test("every system call has a reason", () => {
  for (const { name, why } of [...allowedCalls, ...callsToRunPrograms, ...ignoredCalls, ...absentCalls])
    assert.match(why, /\w.*\.$/, name);
});
