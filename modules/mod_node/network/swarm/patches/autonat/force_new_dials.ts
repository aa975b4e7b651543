/**
 * Makes AutoNAT dial back over a new connection. The library does not say that the connection has to be new: it is
 * given the one over which the peer asks, takes that for a failure, and closes it.
 */
import type { AutoNATComponents } from "@libp2p/autonat";
import { isMultiaddr } from "@multiformats/multiaddr";
import type { Patch, PatchNotices } from "../notices.ts";
import { withOverrides } from "../with_overrides.ts";

export const patch: Patch = {
  library: "@libp2p/autonat",
  version: "3.0.28",
  without: "peers are not told whether others can reach them",
};

/** The components to make the library's service with. */
export function forceNewDials(components: AutoNATComponents, notices: PatchNotices): AutoNATComponents {
  const { connectionManager } = components;
  const { openConnection: open }: Partial<typeof connectionManager> = connectionManager;
  if (!notices.isApplicable(patch, { "connectionManager.openConnection": open })) return components;
  const openConnection: typeof connectionManager.openConnection = (target, options) =>
    connectionManager.openConnection(target, isMultiaddr(target) ? { ...options, force: true } : options);
  return withOverrides(components, { connectionManager: withOverrides(connectionManager, { openConnection }) });
}
