/** The programs of the clone, for tests that start them. */
import { fileURLToPath } from "node:url";
import { heapFlags } from "#core/cli/heap.ts";

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

/** For programs that run the parts of a server by themselves: as a launcher starts one, and with the heap of one that serves. */
export const serverFlags: readonly string[] = [...handedFlags, ...heapFlags];

/** What Node is given to run such a program, which may be another one: that of an installed package has other flags. */
export const wordsOf = (file: string): readonly string[] =>
  file === launcher || file === nodeLauncher ? [...handedFlags, file] : [file];
