/** Requests that an app takes before the routes of all apps are tried: those for hosts that nobody can list. */
import type { Handler, HttpRequest } from "../types.ts";
import type { AppMount } from "./mount.ts";

export interface Claim {
  readonly mount: AppMount;
  readonly handler: Handler;
}

/** The first app that wants the request, in the order of loading; a promise where one has to find out. */
export function claimOf(
  request: HttpRequest,
  claimants: readonly AppMount[],
  from = 0,
): Claim | undefined | Promise<Claim | undefined> {
  for (let at = from; at < claimants.length; at += 1) {
    const mount = claimants[at] as AppMount;
    if (mount.retired) continue;
    const handler = mount.provider.claims?.(request);
    if (handler instanceof Promise) {
      return handler.then((found) =>
        found === undefined ? claimOf(request, claimants, at + 1) : { mount, handler: found },
      );
    }
    if (handler !== undefined) return { mount, handler };
  }
  return undefined;
}
