/** Listening sockets that systemd hands to the process that it starts: sd_listen_fds(3). */
import type { InheritedSocket } from "../../ports/inherited.ts";

/** The number of the first inherited descriptor. */
const FIRST = 3;

/** A larger number in the environment is a mistake. */
const MAX_SOCKETS = 256;

interface Ids {
  readonly pid: number;
  /** The launcher, if it runs this program as a child. */
  readonly ppid: number;
}

/**
 * Returns the sockets that this process has inherited. Returns none if the variables are for
 * another process, such as a parent that has passed them on.
 */
export function inheritedSockets(env: NodeJS.ProcessEnv, { pid, ppid }: Ids = process): InheritedSocket[] {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES } = env;
  const count = Number(LISTEN_FDS);
  if (![pid, ppid].includes(Number(LISTEN_PID)) || !Number.isInteger(count) || count < 1 || count > MAX_SOCKETS)
    return [];
  const names = LISTEN_FDNAMES?.split(":") ?? [];
  return Array.from({ length: count }, (_, at) => ({ fd: FIRST + at, name: names[at] || "unknown" }));
}
