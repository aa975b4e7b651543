/**
 * Assembles seccomp filters: programs of classic BPF, which the kernel runs at each system call.
 * Every instruction has 8 bytes: code, two jump distances, and a constant.
 */

const LOAD = 0x20;
const AND = 0x54;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const RETURN = 0x06;

export const ALLOW = 0x7fff0000;
export const KILL_PROCESS = 0x80000000;
/** The call is not made, and fails with this error number. With 0 it seems to succeed. */
export const fail = (errno: number) => 0x00050000 | errno;

/** Offsets in the kernel's `struct seccomp_data`. */
export const NUMBER = 0;
export const ARCHITECTURE = 4;
export const lowHalf = (arg: number) => 16 + 8 * arg;
export const highHalf = (arg: number) => lowHalf(arg) + 4;

export type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

export const load = (offset: number): Instruction => [LOAD, 0, 0, offset];
export const and = (mask: number): Instruction => [AND, 0, 0, mask];
/** The distances count the instructions that are skipped. */
export const ifEqual = (value: number, ifTrue: number, ifFalse: number): Instruction => [
  JUMP_IF_EQUAL,
  ifTrue,
  ifFalse,
  value,
];
export const ifAtLeast = (value: number, ifTrue: number, ifFalse: number): Instruction => [
  JUMP_IF_AT_LEAST,
  ifTrue,
  ifFalse,
  value,
];
export const give = (result: number): Instruction => [RETURN, 0, 0, result];

/** The kernel's limit of instructions in one filter. */
const MOST = 4096;

/** Returns the bytes of a program. */
export function assemble(program: readonly Instruction[]): Buffer {
  if (program.length > MOST) throw new RangeError(`a filter has at most ${MOST} instructions`);
  const bytes = Buffer.alloc(program.length * 8);
  for (const [at, [code, ifTrue, ifFalse, value]] of program.entries()) {
    bytes.writeUInt16LE(code, at * 8);
    // A distance above 255 throws here.
    bytes.writeUInt8(ifTrue, at * 8 + 2);
    bytes.writeUInt8(ifFalse, at * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, at * 8 + 4);
  }
  return bytes;
}
