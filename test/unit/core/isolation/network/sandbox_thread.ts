/**
 * Stands for a sandbox: a thread whose network is replaced. It runs functions that a test sends as
 * text. Each has the modules of the network as arguments.
 */
import { createServer } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { replaceNetwork } from "#core/isolation/network/replace_network.ts";
import { Channel } from "#core/relay/channel.ts";

if (parentPort === null) throw new Error("This file is for a worker");
const port = parentPort;
const channel = new Channel(
  { postMessage: (message) => port.postMessage(message), on: (event, listener) => port.on(event, listener) },
  {
    accepted: (id: number, ends: never) => network.accepted(id, ends),
    run: async (text: string, values: readonly unknown[]) => {
      const modules = {
        net: await import("node:net"),
        tls: await import("node:tls"),
        http: await import("node:http"),
        https: await import("node:https"),
        http2: await import("node:http2"),
        dns: await import("node:dns"),
        dgram: await import("node:dgram"),
        undici: await import("undici"),
        events: await import("node:events"),
        streams: await import("node:stream"),
      };
      const run = new Function(`return (${text})`)() as (...all: unknown[]) => unknown;
      return await run(modules, ...values);
    },
  },
);
const { path, ca } = workerData as { path: string; ca: string };
(globalThis as { ca?: string }).ca = ca;
const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
server.listen(path, () => channel.notify("listening"));
const network = replaceNetwork({
  dial: (host, at) => channel.call("dial", host, at) as never,
  listen: (address, at) => channel.call("openPort", address, at) as never,
  unlisten: (id) => channel.notify("closePort", id),
  refuse: (what) => Object.assign(new Error(`it may not ${what}`), { code: "PERMISSION_DENIED" }),
});
server.on("connection", network.carried);
