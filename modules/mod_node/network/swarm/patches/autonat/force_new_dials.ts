/**
 * Makes AutoNAT dial back over a new connection. The library does not request a new connection: it
 * gets the one over which the peer asks, treats that as a failure, and closes it.
 */
import type { AutoNATComponents } from "@libp2p/autonat";
import { isMultiaddr } from "@multiformats/multiaddr";
import type { Patch, PatchNotices } from "../notices.ts";
import { withOverrides } from "../with_overrides.ts";

export const patch: Patch = {
  library: "@libp2p/autonat",
  version: "3.0.28",
  without: "peers do not learn whether others can reach them",
};

/** Returns the components for creating the library's service. */
export function forceNewDials(components: AutoNATComponents, notices: PatchNotices): AutoNATComponents {
  const { connectionManager } = components;
  const { openConnection: open }: Partial<typeof connectionManager> = connectionManager;
  if (!notices.isApplicable(patch, { "connectionManager.openConnection": open })) return components;
  const openConnection: typeof connectionManager.openConnection = (target, options) =>
    connectionManager.openConnection(target, isMultiaddr(target) ? { ...options, force: true } : options);
  return withOverrides(components, { connectionManager: withOverrides(connectionManager, { openConnection }) });
}
