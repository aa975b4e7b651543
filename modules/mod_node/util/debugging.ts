/**
 * Whether the environment enables debugging, in the way of go-ipfs: `DEBUG` is 1, t or true, or
 * `IPFS_LOGGING` is debug.
 */
export const isDebugging = ({ DEBUG = "", IPFS_LOGGING }: NodeJS.ProcessEnv): boolean =>
  /^(?:1|t|true)$/i.test(DEBUG) || IPFS_LOGGING === "debug";
