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
 * Modules that are loaded unasked only where their packages are installed. Whoever names one of
 * them learns what is missing.
 */
const leftOut: readonly string[] = isInstalled("lmdb") ? [] : ["http_admin_node", "http_api"];

/**
 * Lists what the host knows of the modules that come with it. Its own sources name none of them, so
 * that any module can take their place.
 */
export const bundled = {
  /** Loaded where the configuration does not say otherwise. */
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
  /**
   * Never quarantined where the configuration does not say otherwise: nothing is served without
   * them.
   */
  essential: ["http", "http_guard", "node", "http_api"],
  /** Serves the socket by which commands find the running server. */
  control: "http_admin",
} as const;
