/**
 * A host in one of several processes of a server: replicates its changes, and offers what the other
 * processes use.
 */
import type { Progress } from "../operations/change.ts";
import type { Log } from "../util/log.ts";
import type { HostParts } from "./parts.ts";
import type { HostOptions, ReplicatedChange, SharedFace } from "./types.ts";

/** Whether another process opens the ports, and does everything that only one process may do. */
export const isSecondary = ({ siblings }: HostOptions): boolean => siblings?.sharedPorts !== undefined;

/**
 * Makes a change in this process first, then in the other processes of the server, if there are
 * any. It is in force after that.
 */
export async function rolling<T>(
  { siblings }: HostOptions,
  change: ReplicatedChange,
  progress: Progress,
  make: (own: Progress) => Promise<T>,
): Promise<T> {
  if (siblings?.replicate === undefined) return make(progress);
  const made = await make({ ...progress, inForce: () => undefined });
  siblings.changed?.();
  await siblings.replicate(change, (what) => progress.step(what));
  return made;
}

export function sharedFace(parts: () => HostParts | undefined, log: () => Log): SharedFace {
  return {
    ports: () => parts()?.ports.shared() ?? [],
    modules: () => parts()?.modules.shared() ?? new Set(),
    sticky: (by) => parts()?.modules.sticky(by) ?? new Set(),
    relayLog: (line, from) => log().relay(line, from === undefined ? {} : { worker: from }),
  };
}
