/**
 * Reports or refuses calls that end the process or change its folder, while a service runs in it.
 */
import { syncBuiltinESMExports } from "node:module";
import type { Worker } from "node:worker_threads";
import type { ProcessAct } from "../host/types.ts";
import { bindAccepted, bindEmitter, guardAsyncHooks } from "../util/contained_calls.ts";
import { withPlainStacks } from "../util/errors.ts";
import { isOwnProcess } from "../util/own_process.ts";
import { guardListeners, type OwnListeners } from "../util/process_listeners.ts";
import { leaveFailed } from "../util/usage.ts";

type Capture = (error: Error) => void;

/** The number of stack frames that is needed to see past the libraries of a module. */
const FRAMES = 100;

type Act = (...values: unknown[]) => string | undefined;

const CAPTURE = "setUncaughtExceptionCaptureCallback";

/**
 * For each function, returns the text of a call for people, or undefined if the call does no harm.
 */
const acts: Readonly<Record<string, Act>> = {
  exit: (code) => `process.exit(${code ?? process.exitCode ?? 0})`,
  reallyExit: (code) => `process.reallyExit(${code ?? 0})`,
  abort: () => "process.abort()",
  execve: (file) => `process.execve(${file})`,
  // Signal 0 only checks whether a process exists.
  kill: (pid, signal) =>
    isOwnProcess(pid) && signal !== 0 ? `process.kill(${pid}, ${signal ?? "SIGTERM"})` : undefined,
  // With several processes, this channel connects a process to the supervisor.
  disconnect: () => "process.disconnect()",
  // The callback would receive the errors of all modules, and the host would receive none.
  setUncaughtExceptionCaptureCallback: (callback) =>
    callback === null || isOfDomain() ? undefined : `process.${CAPTURE}()`,
  chdir: (folder) => `process.chdir(${folder})`,
};

/**
 * Returns true if a domain of Node.js made the call. Domains handle only errors of their own code,
 * and a refusal would leave the domain half entered.
 */
function isOfDomain(): boolean {
  return /[( ]node:domain:/.test(withPlainStacks(() => new Error().stack) ?? "");
}

/** Guarded functions that do not end the process. */
const harmless: ReadonlySet<string> = new Set(["chdir"]);

export interface GuardDeps {
  /** Returns the error to throw instead of the call; undefined if the call is allowed. */
  refuse(act: ProcessAct): Error | undefined;
  /** Called with errors that a module's listener on `process` throws. */
  failed?(error: unknown): void;
  /**
   * The host's own listeners. They stay on `process` until `end`, even when a module removes all
   * listeners.
   */
  readonly listeners?: OwnListeners;
}

export interface ProcessGuard {
  /** The original `process.exit`. */
  readonly exit: typeof process.exit;
  /**
   * Returns the error to throw for another attempt to end the process; undefined if it is allowed.
   */
  refusal(act: string): Error | undefined;
  /** Restores the original functions and removes the listeners. */
  end(): void;
}

export function guardProcess({ refuse, failed = () => undefined, listeners = {} }: GuardDeps): ProcessGuard {
  const functions = process as unknown as Record<string, ((...values: unknown[]) => unknown) | undefined>;
  const originals = new Map(
    Object.keys(acts).flatMap((name) => {
      const own = functions[name];
      return own === undefined ? [] : [[name, own] as const];
    }),
  );
  const { exit } = process;
  let isEnding = false;
  const containing = (callback: Capture) => (error: Error) => {
    try {
      callback(error);
    } catch (thrown) {
      failed(thrown);
    } finally {
      leaveFailed();
    }
  };
  const refusalOf = (name: string, act: string, caller: (...values: unknown[]) => unknown) =>
    refuse({ act, ends: !harmless.has(name), called: callOf(act, caller) });
  for (const [name, own] of originals) {
    const guarded = (...values: unknown[]) => {
      // Node's own `exit` calls `reallyExit`.
      const act = isEnding ? undefined : acts[name]?.(...values);
      const refusal = act === undefined ? undefined : refusalOf(name, act, guarded);
      if (refusal !== undefined) throw refusal;
      if (name === "exit") isEnding = true;
      const [callback] = values;
      // An exception in the listener of a domain would end the process.
      const handed = name === CAPTURE && typeof callback === "function" ? [containing(callback as Capture)] : values;
      return Reflect.apply(own, process, handed);
    };
    functions[name] = guarded;
  }
  const releases = [
    guardListeners({ ...listeners, worker: (made: Worker) => bindEmitter(made, failed) }, failed),
    bindAccepted(failed),
    guardAsyncHooks(failed),
  ];
  // This also changes the functions for code that imports them by name.
  syncBuiltinESMExports();
  const refusal = (act: string) => refusalOf("exit", act, refusal as (...values: unknown[]) => unknown);
  return {
    exit(code) {
      isEnding = true;
      return exit.call(process, code);
    },
    refusal,
    end() {
      for (const release of releases) release();
      Object.assign(process, Object.fromEntries(originals));
      syncBuiltinESMExports();
    },
  };
}

function callOf(act: string, called: (...values: unknown[]) => unknown): Error {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = FRAMES;
  const error = new Error(`${act} was called`);
  withPlainStacks(() => {
    Error.captureStackTrace(error, called);
    // V8 formats the stack when it is read for the first time.
    void error.stack;
  });
  Error.stackTraceLimit = stackTraceLimit;
  return error;
}
