/**
 * Allows one writer at a time, by an object that names the writer. The writer rewrites it regularly
 * as a sign of life.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Backend } from "../backends/backend.ts";

const lockName = "lock";
/** Milliseconds between two signs of life. */
const BEAT_MS = 60_000;
/** Milliseconds without a sign of life after which a lock counts as abandoned. */
const MAX_SILENCE = 10 * 60_000;

/** Ids of the locks of this process. An earlier process may have had the same process number. */
const own = new Set<string>();

interface Holder {
  readonly id: string;
  readonly machine: string;
  readonly pid: number;
  /** Time of the last sign of life, ISO 8601. */
  readonly at: string;
}

export interface Lock {
  /** Aborts when another writer has taken over the lock. */
  readonly lost: AbortSignal;
  /** @throws Error when another writer has taken over the lock */
  check(): Promise<void>;
  release(): Promise<void>;
}

/** @throws Error that names the active writer */
export async function lock(backend: Backend): Promise<Lock> {
  const id = randomBytes(9).toString("hex");
  const text = () =>
    Buffer.from(JSON.stringify({ id, machine: hostname(), pid: process.pid, at: new Date().toISOString() }));
  if (!(await backend.create(lockName, text()))) {
    const holder = await holderOf(backend);
    if (holder !== undefined && isAlive(holder)) throw new Error(refusal(backend, holder));
    await backend.remove(lockName);
    if (!(await backend.create(lockName, text())))
      throw new Error(`${backend.name} is being written by another backup`);
  }
  own.add(id);
  const lost = new AbortController();
  const isOwn = async () => (await holderOf(backend))?.id === id;
  const check = async () => {
    if (lost.signal.aborted || !(await isOwn())) {
      lost.abort(new Error(`${backend.name} was taken over by another backup`));
      throw lost.signal.reason;
    }
  };
  const beat = setInterval(() => {
    check()
      .then(() => backend.write(lockName, text()))
      .catch(() => undefined);
  }, BEAT_MS).unref();
  return {
    lost: lost.signal,
    check,
    async release() {
      clearInterval(beat);
      own.delete(id);
      // A lock that cannot be removed expires soon. The failure must not hide the result of the
      // work.
      await isOwn()
        .then((isStillOwn) => (isStillOwn ? backend.remove(lockName) : undefined))
        .catch(() => undefined);
    },
  };
}

async function holderOf(backend: Backend): Promise<Holder | undefined> {
  const text = await backend.read(lockName);
  try {
    const holder = text === undefined ? undefined : (JSON.parse(text.toString()) as Holder | null);
    return holder === null || typeof holder?.machine !== "string" ? undefined : holder;
  } catch {
    return undefined;
  }
}

/**
 * Processes of this machine can be checked. For other machines only the last sign of life is known.
 */
function isAlive({ id, machine, pid, at }: Holder): boolean {
  if (machine === hostname() && (pid === process.pid ? !own.has(id) : !isRunning(pid))) return false;
  return Date.now() - Date.parse(at) < MAX_SILENCE;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

const refusal = (backend: Backend, { machine, pid, at }: Holder): string =>
  `${backend.name} is being written by process ${pid} of ${machine} (at ${at}): wait until it ends. The lock of a process that was killed on another machine expires after ${MAX_SILENCE / 60_000} minutes`;
