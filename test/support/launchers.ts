/**
 * The programs of the clone, for tests that start them. They run the bundle in `dist/`, as a
 * package does.
 */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { heapFlags } from "#core/cli/heap.ts";

// `test/run.mjs` has already built `dist/` for folders. Test files that share a process are loaded
// by `require`, so this must not await.
if (process.env.TEST_DIST_IS_FRESH === undefined)
  createRequire(import.meta.url)("../../config/build/fresh.mjs").freshen();

const ours = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Paths of `modhost` and `modhost-node`. */
export const launcher = ours("core/cli/launch.mjs");
export const nodeLauncher = ours("modules/mod_http_api/cli/launch_node.mjs");

/**
 * Flags for programs that run parts of a server from the sources. Where test files share processes,
 * such a program uses the bundles of `bundle.mjs` as the hosts of the tests do.
 */
export const sourceFlags: readonly string[] = [
  "--conditions=source",
  ...process.execArgv.filter((flag) => /^--require=.*\/bundles\//.test(flag)),
];

/** The same with the heap size of a server process. */
export const serverFlags: readonly string[] = [...sourceFlags, ...heapFlags];
