/**
 * Maps ports with UPnP (`Swarm.DisableNatPortMap`). The library is loaded when the mapping starts.
 */
import { type Startable, start, stop } from "@libp2p/interface";
import type { UPnPNATComponents } from "@libp2p/upnp-nat";

export function portMapping(components: UPnPNATComponents): Startable {
  let mapping: object | undefined;
  let stopped = false;
  return {
    async start() {
      const { uPnPNAT } = await import("@libp2p/upnp-nat");
      if (stopped) return;
      mapping = uPnPNAT()(components) as object;
      await start(mapping);
    },
    async stop() {
      stopped = true;
      if (mapping !== undefined) await stop(mapping);
    },
  };
}
