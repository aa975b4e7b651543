/** A host that is one of several processes of a server: what it makes of its changes, and what the others use of it. */
import type { Progress } from "../operations/change.ts";
import type { Log } from "../util/log.ts";
import type { HostParts } from "./parts.ts";
import type { FollowStep, HostOptions, SharedFace } from "./types.ts";

/** Another process opens the ports, and what is for one alone is its business. */
export const isFollower = ({ siblings }: HostOptions): boolean => siblings?.lent !== undefined;

/** Makes a change here first, and then in the other processes of the server, if there are any: it is in force at the end. */
export async function rolling<T>(
  { siblings }: HostOptions,
  step: FollowStep,
  progress: Progress,
  make: (own: Progress) => Promise<T>,
): Promise<T> {
  if (siblings?.follow === undefined) return make(progress);
  const made = await make({ ...progress, inForce: () => undefined });
  siblings.changed?.();
  await siblings.follow(step, (what) => progress.step(what));
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
