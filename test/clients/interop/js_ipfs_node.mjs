/**
 * A js-ipfs node on the loopback without bootstrap peers, with its own RPC server. It runs in a
 * folder that has ipfs-daemon, and reports its address and its abilities to its parent. Its routing
 * table acts as a server, which js-ipfs does not do by default.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Daemon } from "ipfs-daemon";

const repo = await mkdtemp(join(tmpdir(), "modhost-js-ipfs-"));
const nowhere = { Enabled: false };
const daemon = new Daemon({
  repo,
  silent: true,
  init: { algorithm: "Ed25519" },
  preload: nowhere,
  EXPERIMENTAL: { ipnsPubsub: false },
  config: {
    Addresses: {
      API: "/ip4/127.0.0.1/tcp/0",
      Gateway: "/ip4/127.0.0.1/tcp/0",
      RPC: "",
      Swarm: ["/ip4/127.0.0.1/tcp/0"],
      Delegates: [],
    },
    Bootstrap: [],
    Discovery: { MDNS: nowhere, webRTCStar: nowhere },
    Routing: { Type: "dhtserver" },
    Swarm: { DisableNatPortMap: true },
  },
});

async function end() {
  await daemon.stop().catch(() => undefined);
  await rm(repo, { recursive: true, force: true });
  process.exit();
}
process.on("disconnect", end).on("SIGTERM", end);

await daemon.start();
const [{ info }] = daemon._httpApi._apiServers;
process.send?.({ url: `http://127.0.0.1:${info.port}`, speaks: ["dht", "names", "pubsub"] });
