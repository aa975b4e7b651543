/** The two kinds of runners, which run modules outside of the host's thread. */
import { ModhostError } from "../util/errors.ts";

/** The worker thread of an isolated module, or the process of a sandboxed one. */
export type RunnerKind = "worker" | "sandbox";

/** Returns the error for a call that a module cannot make where it runs. */
export type Refuse = (what: string, remedy: string) => ModhostError;

/** Returns a function that makes the errors for modules in a runner. */
export function refusalIn(kind: RunnerKind): Refuse {
  const code = kind === "worker" ? "ISOLATED" : "SANDBOXED";
  return (what, remedy) => new ModhostError(code, { what, remedy });
}
