/**
 * Calls of the C library, through Node's own FFI, which Node has since version 26. It is
 * experimental and has renamed fields within 26, so both names are given.
 */

interface Signature {
  readonly arguments: readonly string[];
  readonly return: string;
}

interface Ffi {
  dlopen(
    path: null,
    functions: Record<string, Signature & { parameters: readonly string[]; result: string }>,
  ): { functions: Record<string, (...values: bigint[]) => bigint> };
  getRawPointer(source: ArrayBufferView): bigint;
  getInt32(pointer: bigint): number;
  exportBuffer(source: Uint8Array, pointer: bigint, length: number): void;
}

/** A call of the kernel that failed. */
export class CallError extends Error {
  readonly errno: number;

  constructor(call: string, errno: number) {
    super(`${call} failed with error ${errno}`);
    this.errno = errno;
  }
}

/** Memory that the kernel reads must not be freed before the process is another one. */
const alive: ArrayBufferView[] = [];

export class Libc {
  readonly #ffi: Ffi;
  readonly #syscall: (...values: bigint[]) => bigint;
  readonly #errno: () => bigint;

  /** @throws {Error} on a Node without FFI, or with one that is different from what is expected */
  constructor() {
    const ffi = process.getBuiltinModule("node:ffi") as unknown as Ffi | undefined;
    if (ffi === undefined) throw new Error(`Node.js ${process.versions.node} has no node:ffi`);
    const signature = (values: readonly string[], result: string) => ({
      arguments: values,
      return: result,
      parameters: values,
      result,
    });
    const { functions } = ffi.dlopen(null, {
      syscall: signature(Array(7).fill("int64"), "int64"),
      __errno_location: signature([], "pointer"),
    });
    this.#ffi = ffi;
    this.#syscall = functions.syscall!;
    this.#errno = functions.__errno_location!;
  }

  /** Makes a system call. Returns -1 if it fails. */
  try(number: number, ...args: readonly (number | bigint)[]): bigint {
    const all = [number, ...args, 0, 0, 0, 0, 0, 0].slice(0, 7).map(BigInt);
    return this.#syscall(...all);
  }

  /** @throws {CallError} if the call fails */
  call(name: string, number: number, ...args: readonly (number | bigint)[]): bigint {
    const result = this.try(number, ...args);
    if (result === -1n) throw new CallError(name, this.#ffi.getInt32(this.#errno()));
    return result;
  }

  /** Returns the address of bytes, which stay where they are until the process is another one. */
  address(bytes: Buffer): bigint {
    alive.push(bytes);
    return this.#ffi.getRawPointer(bytes);
  }

  /** Writes bytes to an address. */
  write(bytes: Buffer, to: bigint): void {
    this.#ffi.exportBuffer(bytes, to, bytes.length);
  }
}
