/** The modules of a host that serves a node which is already open. */

import type { Node } from "modhost/node";
import type { InlineModule } from "../../../../core/index.ts";
import type { Module } from "../../../../core/types.ts";
import loadNode, { global as nodeIsGlobal, options as nodeOptions } from "../../../mod_node/mod_node.ts";
import load, { depends, global, options } from "../../index.ts";

/**
 * Returns the modules for `createHost`. The host closes the node when it stops. With `trusted`, the
 * API serves only this program and requires no secret.
 */
export function inlineModules(node: Node, { trusted = false } = {}): readonly InlineModule[] {
  return [
    {
      name: "node",
      global: nodeIsGlobal,
      options: nodeOptions,
      load: (module) => loadNode(module as unknown as Module<typeof nodeOptions>, node),
    },
    {
      name: "http_api",
      depends,
      global,
      options,
      load: (module) => load(module as unknown as Module<typeof options>, { required: true, trusted }),
    },
  ];
}
