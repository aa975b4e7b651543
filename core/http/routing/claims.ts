/**
 * Lets apps claim requests before the routes of all apps are tried, for hosts that nobody can list.
 */
import type { Handler, HttpRequest } from "../../types.ts";
import type { AppMount } from "./mount.ts";

export interface Claim {
  readonly mount: AppMount;
  readonly handler: Handler;
}

/**
 * Returns the claim of the first app that claims the request, in the order of loading. Returns a
 * promise when an app has to find out.
 */
export function claimOf(
  request: HttpRequest,
  claimants: readonly AppMount[],
  from = 0,
): Claim | undefined | Promise<Claim | undefined> {
  for (let at = from; at < claimants.length; at += 1) {
    const mount = claimants[at] as AppMount;
    if (mount.retired) continue;
    const handler = mount.provider.claims && mount.usage.run(mount.provider.claims.bind(mount.provider), request);
    if (handler instanceof Promise) {
      return handler.then((found) =>
        found === undefined ? claimOf(request, claimants, at + 1) : { mount, handler: found },
      );
    }
    if (handler !== undefined) return { mount, handler };
  }
  return undefined;
}
