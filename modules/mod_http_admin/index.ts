/** The Admin API: what operates the running server, at a Unix socket in the data folder and at `/admin/api`. */
import type { Module } from "../../core/types.ts";
import { throughPorts, throughSocket } from "./access.ts";
import { apiRoutes } from "./api.ts";
import { Streams } from "./events.ts";
import { operations } from "./operations/index.ts";
import { options } from "./options.ts";
import { openSocket } from "./socket.ts";

export { options };
export const global = true;
export const depends = ["http"];

export default function load(module: Module): void {
  const streams = new Streams(module);
  openSocket(module, apiRoutes({ module, operations, streams, authorize: throughSocket }));
  module.provides("http", {
    route: apiRoutes({ module, operations, streams, authorize: throughPorts(module) }),
    streaming_uploads: true,
    cors: { enabled: false },
  });
}
