/** The Admin API: what operates the running server, at a Unix socket in the data folder. */
import type { Module } from "../../core/types.ts";
import { apiRoutes } from "./api.ts";
import { throughSocket } from "./door.ts";
import { operations } from "./operations/index.ts";
import { options } from "./options.ts";
import { openSocket } from "./socket.ts";

export { options };
export const global = true;
export const depends = ["http"];

export default function load(module: Module): void {
  openSocket(module, apiRoutes({ module, operations, authorize: throughSocket }));
}
