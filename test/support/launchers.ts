/** The programs of the clone, for tests that start them. */
import { fileURLToPath } from "node:url";

const ours = (name: string) => fileURLToPath(new URL(`../../core/cli/${name}`, import.meta.url));

/** `modhost` and `modhost-node`. */
export const launcher = ours("launch.mjs");
export const nodeLauncher = ours("launch_node.mjs");

/**
 * The flags with which a launcher in a clone starts Node anew when it was started without them: given at once they save
 * the first of the two starts. That a launcher sees to it by itself is shown by `unit/core/cli/launch.test.ts`.
 */
export const handedFlags: readonly string[] = [
  "--conditions=source",
  // See `bundle.mjs`.
  ...(process.env.TEST_PROGRAM_HOOK ? [`--require=${process.env.TEST_PROGRAM_HOOK}`] : []),
];

/** All that a launcher asks of V8 for a server, for programs that run its parts by themselves. */
export const serverFlags: readonly string[] = [
  ...handedFlags,
  "--heap-growing-percent=100",
  "--no-allocation-site-pretenuring",
];

/** What Node is given to run such a program, which may be another one: that of an installed package has other flags. */
export const wordsOf = (file: string): readonly string[] =>
  file === launcher || file === nodeLauncher ? [...handedFlags, file] : [file];
