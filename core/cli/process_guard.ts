/** What ends or moves the process of all modules, while a service runs: who calls it is told of, or refused. */
import { syncBuiltinESMExports } from "node:module";
import type { ProcessAct } from "../host/types.ts";

/** Deep enough to see through the libraries of a module. */
const FRAMES = 100;

/** For each function, what a call of it is called where people read of it, unless it does no harm. */
const acts: Readonly<Record<"exit" | "abort" | "kill" | "chdir", (...values: unknown[]) => string | undefined>> = {
  exit: (code) => `process.exit(${code ?? process.exitCode ?? 0})`,
  abort: () => "process.abort()",
  // Signal 0 asks whether a process is there.
  kill: (pid, signal) => (isOwn(pid) && signal !== 0 ? `process.kill(${pid}, ${signal ?? "SIGTERM"})` : undefined),
  chdir: (folder) => `process.chdir(${folder})`,
};

/** This process, or the group that it is in or leads: 0 is that of whoever calls. Node.js takes texts for numbers. */
function isOwn(pid: unknown): boolean {
  return [process.pid, 0, -process.pid].includes(Number(pid));
}

export interface GuardDeps {
  /** Gives the error to throw instead; undefined where it goes on. */
  refuse(act: ProcessAct): Error | undefined;
}

/** Gives `process.exit` as it was, and what puts back all of them. */
export function guardProcess({ refuse }: GuardDeps): { readonly exit: typeof process.exit; end(): void } {
  const { exit, abort, kill, chdir } = process;
  const former = { exit, abort, kill, chdir };
  for (const name of Object.keys(acts) as (keyof typeof acts)[]) {
    const guarded = (...values: unknown[]) => {
      const act = acts[name](...values);
      const refusal =
        act === undefined ? undefined : refuse({ act, ends: name !== "chdir", called: callOf(act, guarded) });
      if (refusal !== undefined) throw refusal;
      return Reflect.apply(former[name], process, values);
    };
    Object.assign(process, { [name]: guarded });
  }
  // Also for those who import them by name.
  syncBuiltinESMExports();
  return {
    exit: exit.bind(process),
    end() {
      Object.assign(process, former);
      syncBuiltinESMExports();
    },
  };
}

function callOf(act: string, called: (...values: unknown[]) => unknown): Error {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = FRAMES;
  const error = new Error(`${act} was called`);
  Error.captureStackTrace(error, called);
  Error.stackTraceLimit = stackTraceLimit;
  return error;
}
