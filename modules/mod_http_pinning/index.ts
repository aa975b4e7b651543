/** Serves the public pinning service API under `/pinning`, so that the node pins for others. */
import type { NodeModule } from "modhost/node";
import type { Module } from "../../core/types.ts";
import { pinningRoutes } from "./api.ts";
import { options } from "./options.ts";
import { Requests } from "./requests.ts";
import { scopes } from "./scopes.ts";
import { usersFrom } from "./users.ts";
import { Work } from "./work.ts";

export { options };
export const depends = ["http", "node"];
/** There is one node per process, shared by all virtual hosts. */
export const global = true;
export const shared = true;

export default function load(module: Module<typeof options>): void {
  const users = usersFrom(module.get_option("pinning_tokens"));
  const parallel = module.get_option_integer("pinning_parallel");
  const patience = module.get_option_period("pinning_timeout") * 1000;
  const node = module.depends<NodeModule>("node");
  const { log } = module;

  // Created on first use: when modules are only inspected (`modhost check`), the node is not open.
  let opened: { readonly requests: Requests; readonly work: Work } | undefined;
  const service = () => {
    if (opened === undefined) {
      const requests = new Requests(node.lowLevel.metadata);
      opened = { requests, work: new Work({ node, requests, log, parallel, patience }) };
    }
    return opened;
  };

  module.ready = () => {
    if (users.length === 0) log.warn("the option pinning_tokens is not set, so only tokens of the server can pin");
    service().work.start();
  };
  module.unload = () => opened?.work.stop();
  for (const kind of scopes) module.provides("token-scope", kind);
  module.provides("http", {
    route: pinningRoutes({
      users,
      tokens: module.tokens,
      log,
      node,
      requests: () => service().requests,
      take: (request) => service().work.take(request),
    }),
  });
}
