/** Says from the code of an error which layer of the sandbox refused an attempt. */

const byCode: Readonly<Record<string, string>> = {
  PERMISSION_DENIED: "host (not granted)",
  SANDBOXED: "host (no grant allows it)",
  EMFILE: "host (limits)",
  ERR_ACCESS_DENIED: "node-permission",
  EACCES: "landlock",
  EXDEV: "landlock",
  EPERM: "seccomp",
  ENOSYS: "seccomp",
  "ERRNO-1": "seccomp",
  "ERRNO-38": "seccomp",
  // A hidden file or process cannot be found, or the sandbox has another one of its own.
  ENOENT: "out of sight",
  ESRCH: "out of sight",
  ENOTDIR: "out of sight",
};

/**
 * Returns the layer that gives this error. Without namespaces EACCES comes from Landlock or from
 * the modes of files, and EPERM from the list of system calls or from Landlock.
 */
export const refuserOf = (code: string): string =>
  Object.hasOwn(byCode, code) ? (byCode[code] as string) : /^E[A-Z0-9]+$/.test(code) ? `system (${code})` : "node";
