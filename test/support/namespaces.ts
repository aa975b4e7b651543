/** Runs programs in a namespace of process ids, as containers do. */
import { spawnSync } from "node:child_process";

const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];

/**
 * Words in front of a program and its arguments. The program ends with the process that was
 * started.
 */
export const inNamespace: readonly [program: string, ...string[]] = [
  "unshare",
  ...asRoot,
  "--pid",
  "--fork",
  "--mount-proc",
  "--kill-child",
];

const [program, ...before] = inNamespace;

/** The reason to skip tests that need a namespace of process ids, or false if they can run. */
export const withoutNamespaces: string | false =
  spawnSync(program, [...before, "true"]).status !== 0 && "this system cannot make a namespace of process ids";
