/** Programs with process ids of their own, as containers have them. */
import { spawnSync } from "node:child_process";

const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];

/** In front of a program and its arguments. The program ends with the process that was started. */
export const inNamespace: readonly [program: string, ...string[]] = [
  "unshare",
  ...asRoot,
  "--pid",
  "--fork",
  "--mount-proc",
  "--kill-child",
];

const [program, ...before] = inNamespace;

/** Of tests that need them: why they are left out here. */
export const withoutNamespaces: string | false =
  spawnSync(program, [...before, "true"]).status !== 0 && "no namespace of process ids can be made here";
