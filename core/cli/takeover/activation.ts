/** Listening sockets that systemd hands to the process that it starts: sd_listen_fds(3). */
import type { InheritedSocket } from "../../ports/inherited.ts";

/** The first descriptor that systemd passes. */
const FIRST = 3;

/** More sockets than this are a mistake. */
const MAX_SOCKETS = 256;

interface Ids {
  readonly pid: number;
  /** The process that started this one: the launcher, if it runs this program as a child. */
  readonly ppid: number;
}

/**
 * Returns an empty list if the variables are for another process, such as a parent that did not
 * remove them.
 */
export function inheritedSockets(env: NodeJS.ProcessEnv, { pid, ppid }: Ids = process): InheritedSocket[] {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES } = env;
  const count = Number(LISTEN_FDS);
  if (![pid, ppid].includes(Number(LISTEN_PID)) || !Number.isInteger(count) || count < 1 || count > MAX_SOCKETS)
    return [];
  const names = LISTEN_FDNAMES?.split(":") ?? [];
  return Array.from({ length: count }, (_, at) => ({ fd: FIRST + at, name: names[at] || "unknown" }));
}
