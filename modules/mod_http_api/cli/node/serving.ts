/** The RPC module over a node that is open already. */
import type { GivenModule } from "../../../../core/index.ts";
import type { Module } from "../../../../core/types.ts";
import type { Node } from "../../../mod_node/index.ts";
import load, { depends, global, options } from "../../index.ts";

/** For `createHost`, which closes the node in the end. */
export function serving(node: Node): GivenModule {
  return {
    name: "http_api",
    depends,
    global,
    options,
    load: (module) => load(module as unknown as Module<typeof options>, node),
  };
}
