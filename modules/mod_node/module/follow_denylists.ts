/** Follows the denylists of the node while it serves. */
import { type LowLevelNode, watchDenylists } from "modhost/node";
import type { Module } from "../../../core/types.ts";

/** Applies the denylists in their folders after each change and at `modhost reload`. */
export function followDenylists(module: Module, { denylists }: Pick<LowLevelNode, "denylists">): void {
  const warn = (sentence: string) => module.log.warn("%s", sentence);
  module.on_release("the watch of the denylists", watchDenylists(denylists, warn));
  module.hook("server-changed", () => void denylists.reread());
}
