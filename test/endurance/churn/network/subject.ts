/**
 * The node under test in a process of its own. It serves its API, and reports its resources to its
 * parent.
 */

import type { NodeModule } from "modhost/node";
import { createHost } from "#core/index.ts";
import { handlesNow } from "#core/testing/handles.ts";
import type { Module } from "#core/types.ts";
import type { Network } from "#node/network/network.ts";
import { heapUsed } from "#test/support/heap.ts";

/** Resources of the process at a moment. */
export interface Holdings {
  /** Bytes of heap after a collection, and bytes outside of the heap. */
  readonly heap: number;
  readonly outside: number;
  /** Number of handles, open files and listeners by kind. */
  readonly handles: readonly (readonly [kind: string, count: number])[];
  /**
   * Number of network resources by kind. All are 0 while nobody is connected and no request is
   * pending.
   */
  readonly network: Readonly<Record<string, number>>;
  /** Listeners that others have added to libp2p, by event. */
  readonly listeners: Readonly<Record<string, number>>;
}

const events = [
  "connection:open",
  "connection:close",
  "peer:connect",
  "peer:disconnect",
  "peer:identify",
  "peer:update",
  "self:peer:update",
] as const;

let node: NodeModule | undefined;

const host = createHost({
  modules: [
    {
      name: "watch",
      load(module: Module) {
        node = module.depends<NodeModule>("node");
      },
    },
  ],
  config: { http_ports: [0], https_ports: [], http_log: false, data_path: process.env.CHURN_FOLDER },
  log: { level: "warn", destination: { write: (line) => void process.stderr.write(line) } },
});
await host.start();

process.on("message", (message) => {
  if (message === "stop") void host.stop().then(() => process.disconnect());
  else void holdings().then((found) => process.send?.(found));
});
process.send?.(host.listening().find(({ scheme }) => scheme === "http")?.port);

async function holdings(): Promise<Holdings> {
  const heap = await heapUsed();
  const { external } = process.memoryUsage();
  const network = await (node as NodeModule).lowLevel.network();
  const { libp2p } = network;
  return {
    heap,
    outside: external,
    handles: [...handlesNow(host)],
    network: await networkHoldings(network),
    listeners: Object.fromEntries(events.map((event) => [event, libp2p.listenerCount(event)])),
  };
}

async function networkHoldings({ libp2p, bitswap, p2p, pubsub }: Network): Promise<Holdings["network"]> {
  const connections = libp2p.getConnections();
  const { wantlist, peers, provideBufLen } = bitswap.stat();
  return {
    connections: connections.length,
    streams: connections.reduce((sum, { streams: open }) => sum + open.length, 0),
    dials: libp2p.getDialQueue().length,
    wants: wantlist.length,
    "bitswap peers": peers.length,
    "provide queue": provideBufLen,
    "p2p streams": p2p.streams().length,
    "p2p listeners": p2p.list().length,
    "pubsub peers": pubsub?.peers().length ?? 0,
  };
}
