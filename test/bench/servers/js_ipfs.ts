/**
 * js-ipfs with its default settings, without the network. JS_IPFS is the folder in which
 * `ipfs-daemon` is installed.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { report } from "./report.ts";

interface Daemon {
  start(): Promise<void>;
  readonly _httpApi: { readonly _apiServers: readonly { readonly info: { readonly port: number } }[] };
}

const entry = join(process.env.JS_IPFS ?? "", "node_modules", "ipfs-daemon", "src", "index.js");
const { Daemon } = (await import(pathToFileURL(entry).href)) as {
  Daemon: new (options: object) => Daemon;
};
const nowhere = { Enabled: false };
const daemon = new Daemon({
  repo: process.env.BENCH_FOLDER,
  offline: true,
  silent: true,
  config: {
    Addresses: { API: "/ip4/127.0.0.1/tcp/0", Gateway: "/ip4/127.0.0.1/tcp/0", RPC: "", Swarm: [], Delegates: [] },
    Bootstrap: [],
    Discovery: { MDNS: nowhere, webRTCStar: nowhere },
  },
});
await daemon.start();
report(daemon._httpApi._apiServers[0]?.info.port ?? 0);
