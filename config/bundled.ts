import { createRequire } from "node:module";

const { resolve } = createRequire(import.meta.url);

/** True unless npm was told to leave out this optional dependency, or could not install it. */
function isInstalled(name: string): boolean {
  try {
    return resolve(name) !== "";
  } catch {
    return false;
  }
}

/**
 * Modules that are enabled by default only if their packages are installed. Naming one of them in
 * the configuration reports what is missing.
 */
const leftOut: readonly string[] = isInstalled("lmdb") ? [] : ["http_admin_node", "http_api"];

/**
 * The host's knowledge of the modules that come with it. The host's sources name none of
 * them, so that any module can replace them.
 */
export const bundled = {
  /** Loaded unless the configuration says otherwise. */
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
    "http_api",
  ].filter((name) => !leftOut.includes(name)),
  /** Never quarantined unless the configuration says otherwise: without them nothing is served. */
  essential: ["http", "http_guard", "node", "http_api"],
  /** Serves the socket at which commands find the running server. */
  control: "http_admin",
} as const;
