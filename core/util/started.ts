/** Tracks servers, threads, child processes and timers that the code of modules starts. */
import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import type { Server } from "node:net";
import type { Worker } from "node:worker_threads";
import { watchTimers } from "./patches/node/timers.ts";
import { foreignCaller } from "./stack.ts";
import { actingNow, type Usage } from "./usage.ts";

export interface Started {
  readonly kind: "server" | "thread" | "child process" | "timer";
  /** Returns a description for people. */
  describe(): string;
  isRunning(): boolean;
}

/** Ended entries are removed when a list has grown to twice the number that was running before. */
const MIN_PRUNED = 16;

interface Account {
  all: Started[];
  pruneAt: number;
  isGone: boolean;
  /** Called when code of an unloaded module starts something. */
  startedLate?: (() => void) | undefined;
}

const accounts = new WeakMap<Usage, Account>();

/** Returns what was started in the asynchronous context of a module and is still running. */
export function startedBy(usage: Usage): readonly Started[] {
  return accounts.get(usage)?.all.filter((each) => each.isRunning()) ?? [];
}

/**
 * Calls `late` once when code of an unloaded module starts something, such as the next timeout of
 * an endless chain.
 */
export function whenStartedLate(usage: Usage, late: () => void): void {
  Object.assign(accountOf(usage), { isGone: true, startedLate: late });
}

/** Counts the entries of each kind, and adds them to `others`. */
export function countStarted(
  all: readonly Started[],
  others: Readonly<Record<string, number>> = {},
): Record<string, number> {
  const counts = { ...others };
  for (const { kind } of all) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

let isWatching = false;

/**
 * Starts to record what modules start. Anything that the host starts, or that starts without a
 * context, belongs to nobody. For a live module only intervals are recorded among the timers: a
 * timeout ends by itself, unless code of an unloaded module sets the next one.
 */
export function watchStarted(): void {
  if (isWatching) return;
  isWatching = true;
  subscribe("tracing:net.server.listen:asyncEnd", (message) => note(serverOf((message as { server: Server }).server)));
  subscribe("child_process", (message) => note(childOf((message as { process: ChildProcess }).process)));
  subscribe("worker_threads", (message) => note(threadOf((message as { worker: Worker }).worker)));
  watchTimers({
    isWanted(repeats) {
      const usage = actingNow();
      return usage !== undefined && (repeats || accounts.get(usage)?.isGone === true);
    },
    started(what, isRunning) {
      // Timers of the host and of Node.js may serve many modules, whichever of them caused the
      // first one.
      const caller = foreignCaller();
      if (caller !== undefined) note({ kind: "timer", describe: () => `${what} set in ${caller}`, isRunning });
    },
  });
}

function accountOf(usage: Usage): Account {
  let account = accounts.get(usage);
  if (account === undefined) accounts.set(usage, (account = { all: [], pruneAt: MIN_PRUNED, isGone: false }));
  return account;
}

function note(what: Started): void {
  const usage = actingNow();
  if (usage === undefined) return;
  const account = accountOf(usage);
  account.all.push(what);
  if (account.all.length >= account.pruneAt) {
    account.all = account.all.filter((each) => each.isRunning());
    account.pruneAt = Math.max(MIN_PRUNED, account.all.length * 2);
  }
  const { startedLate } = account;
  if (startedLate === undefined) return;
  account.startedLate = undefined;
  startedLate();
}

function serverOf(server: Server): Started {
  return {
    kind: "server",
    describe() {
      const bound = server.address();
      return typeof bound === "object"
        ? `a server on port ${bound?.port} of ${bound?.address}`
        : `a server at ${bound}`;
    },
    isRunning: () => server.listening,
  };
}

function childOf(child: ChildProcess): Started {
  return {
    kind: "child process",
    describe: () => `the child process ${child.pid} (${child.spawnfile})`,
    isRunning: () => child.pid !== undefined && child.exitCode === null && child.signalCode === null,
  };
}

function threadOf(worker: Worker): Started {
  return {
    kind: "thread",
    describe: () => `the thread ${worker.threadId}`,
    // A thread has no id after it has ended.
    isRunning: () => worker.threadId !== -1,
  };
}
