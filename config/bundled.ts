import { createRequire } from "node:module";

const { resolve } = createRequire(import.meta.url);

/** Returns false if npm was called without this optional dependency, or could not install it. */
function isInstalled(name: string): boolean {
  try {
    return resolve(name) !== "";
  } catch {
    return false;
  }
}

/**
 * Modules that are enabled by default only if their optional packages are installed. If the
 * configuration enables one of them all the same, the error names the missing package.
 */
const leftOut: readonly string[] = isInstalled("lmdb") ? [] : ["http_admin_node", "http_api"];

/**
 * The names of bundled modules that the host uses. Its own sources contain no such name, so another
 * module can take over any of these tasks.
 */
export const bundled = {
  /** The default of `modules_enabled`. */
  enabled: [
    "http",
    "http_errors",
    "http_files",
    "http_dir_listing",
    "http_log",
    "http_health",
    "http_admin",
    "http_admin_node",
    "backup",
    "packages",
    "http_api",
  ].filter((name) => !leftOut.includes(name)),
  /** Modules that are never quarantined by default, because nothing is served without them. */
  essential: ["http", "http_guard", "node", "http_api"],
  /** Serves the socket at which commands find the running server. */
  control: "http_admin",
  /** Serves folders of web pages that `modhost run` is started with. */
  fileServer: "http_files",
  /** Lists the folders without an index page, for the file server. */
  folderLister: "http_dir_listing",
} as const;
