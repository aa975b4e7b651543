/**
 * The programs of the clone, for tests that start them: they run the bundle in `dist/`, as a
 * package does.
 */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { heapFlags } from "#core/cli/heap.ts";

// `test/run.mjs` has seen to it for folders. Files of tests that share a process are required, so
// nothing is awaited here.
if (process.env.TEST_DIST_IS_FRESH === undefined)
  createRequire(import.meta.url)("../../config/build/fresh.mjs").freshen();

const ours = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** `modhost` and `modhost-node`. */
export const launcher = ours("core/cli/launch.mjs");
export const nodeLauncher = ours("modules/mod_http_api/cli/launch_node.mjs");

/**
 * For programs that run the parts of a server by themselves, from sources: with the heap of a
 * process that serves.
 */
export const serverFlags: readonly string[] = ["--conditions=source", "--disable-sigusr1", ...heapFlags];

/**
 * What Node is given to run such a program. The launcher of a server starts Node again when this
 * flag is missing: it saves the first of the two starts. `unit/core/cli/launch.test.ts` shows that
 * a launcher adds it by itself.
 */
export const wordsOf = (file: string): readonly string[] => ["--disable-sigusr1", file];
