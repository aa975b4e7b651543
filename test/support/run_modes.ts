/** Runs tests of modules that are outside of the host's thread for each way to run them. */
import { sandboxUnavailable } from "#core/sandbox/index.ts";
import type { ModuleRun } from "#core/types.ts";

export type OutsideMode = Exclude<ModuleRun, "trusted">;

export interface RunModeCase {
  readonly mode: OutsideMode;
  /** The words for titles of tests. */
  readonly title: string;
  /** The place in texts: "worker" or "sandbox". */
  readonly runner: "worker" | "sandbox";
  /** Why its tests are skipped; false where they can run. */
  readonly skip: string | false;
}

export const runModes: readonly RunModeCase[] = [
  { mode: "isolated", title: "an isolated module", runner: "worker", skip: false },
  { mode: "sandboxed", title: "a sandboxed module", runner: "sandbox", skip: sandboxUnavailable() ?? false },
];

/** Matches the files of modules that declare themselves isolated. */
const isolatedFile = /\bisolated\b.*true/;

/**
 * Returns the options with which the modules in these files run in a way: those that declare
 * themselves isolated, and those that are named. A sandboxed module may call all functions of the
 * modules that `call` names.
 */
export function runningAs(
  mode: OutsideMode,
  files: Readonly<Record<string, string>>,
  { names = [], call = [], grant = {} }: { names?: readonly string[]; call?: readonly string[]; grant?: object } = {},
): Record<string, unknown> {
  const declared = Object.entries(files).flatMap(([file, text]) => {
    const name = /^mod_(\w+)\.js$/.exec(file)?.[1];
    return name !== undefined && isolatedFile.test(text) ? [name] : [];
  });
  const run =
    mode === "isolated"
      ? { run: mode }
      : { run: mode, grant: { call: Object.fromEntries(call.map((name) => [name, true])), ...grant } };
  return { modules: Object.fromEntries([...declared, ...names].map((name) => [name, run])) };
}
