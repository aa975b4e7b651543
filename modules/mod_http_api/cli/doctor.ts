/**
 * Checks of `modhost doctor` on the repo of the node, and on the store that several hosts share.
 */
export { repoChecks as checks } from "./node/checks.ts";
