/** Descriptors of the new program, and `execve`, which makes this process the new program. */
import { randomInt } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { CallError, type Libc } from "./libc.ts";
import { calls } from "./numbers.ts";

const AF_UNIX = 1;
const SOCK_STREAM_CLOEXEC = 1 | 0o2000000;
/** The size of the queue of connections; the kernel lowers it to its own limit. */
const BACKLOG = 4096;
/** Bytes of a path in the kernel's structure, with the zero at its end. */
const MOST_OF_PATH = 108;

/** Makes a listening Unix socket at `path`, and leaves it at the descriptor `to`. */
export function listenAt(libc: Libc, path: string, to: number): void {
  const bytes = Buffer.from(path);
  if (bytes.length >= MOST_OF_PATH) throw new Error(`the path of the socket is too long: ${path}`);
  const address = Buffer.alloc(2 + MOST_OF_PATH);
  address.writeUInt16LE(AF_UNIX, 0);
  bytes.copy(address, 2);
  rmSync(path, { force: true });
  const socket = libc.call("socket", calls.socket, AF_UNIX, SOCK_STREAM_CLOEXEC, 0);
  const mask = process.umask(0o177);
  libc.call(`bind to ${path}`, calls.bind, socket, libc.address(address), 3 + bytes.length);
  process.umask(mask);
  libc.call("listen", calls.listen, socket, BACKLOG);
  libc.call("dup3", calls.dup3, socket, to, 0);
  libc.call("close", calls.close, socket);
}

const F_SETFD = 2;
const CLOSE_ON_EXEC = 1;

/** Leaves these descriptors open for the new program, and no others. */
export function keepOnly(libc: Libc, wanted: readonly number[]): void {
  for (const entry of readdirSync("/proc/self/fd")) {
    const fd = Number(entry);
    // The folder that was listed is closed by now, so its descriptor fails.
    libc.try(calls.fcntl, fd, F_SETFD, wanted.includes(fd) ? 0 : CLOSE_ON_EXEC);
  }
}

const PROT_READ_WRITE = 3;
/** MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED_NOREPLACE */
const PRIVATE_AT_ADDRESS = 0x100022;
const EEXIST = 17;
const PAGE = 4096n;
/** Addresses from 2^36 to 2^38 exist on all processors. */
const LOWEST = 1n << 36n;
const PAGES = 2 ** 26 - 2 ** 20;

/** Arguments of `execve` in memory, at addresses that nobody can guess. */
export interface ExecArguments {
  readonly path: bigint;
  readonly args: bigint;
  readonly env: bigint;
}

export function prepare(libc: Libc, path: string, args: readonly string[], env: readonly string[]): ExecArguments {
  return {
    path: atRandom(libc, zeroEnded(path)),
    args: atRandom(libc, table(libc, [path, ...args])),
    env: atRandom(libc, table(libc, env)),
  };
}

/** @throws {CallError} if the program cannot be executed; otherwise it does not return */
export function become(libc: Libc, { path, args, env }: ExecArguments): never {
  libc.call("execve", calls.execve, path, args, env);
  throw new CallError("execve", 0);
}

const zeroEnded = (text: string) => Buffer.from(`${text}\0`);

function table(libc: Libc, texts: readonly string[]): Buffer {
  const bytes = Buffer.alloc((texts.length + 1) * 8);
  for (const [at, text] of texts.entries()) bytes.writeBigUInt64LE(libc.address(zeroEnded(text)), at * 8);
  return bytes;
}

/** Copies bytes to a random address. */
function atRandom(libc: Libc, bytes: Buffer): bigint {
  const within = BigInt(randomInt(Number(PAGE) / 8)) * 8n;
  const size = ((within + BigInt(bytes.length) + PAGE - 1n) / PAGE) * PAGE;
  for (;;) {
    const page = LOWEST + BigInt(randomInt(PAGES)) * PAGE;
    try {
      const at = libc.call("mmap", calls.mmap, page, size, PROT_READ_WRITE, PRIVATE_AT_ADDRESS, -1, 0) + within;
      libc.write(bytes, at);
      return at;
    } catch (error) {
      if (!(error instanceof CallError && error.errno === EEXIST)) throw error;
    }
  }
}
