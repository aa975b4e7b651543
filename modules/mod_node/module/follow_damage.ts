/**
 * The status of the module, which the doctor and the dashboard show, says while blocks are lost or
 * damaged.
 */
import type { LowLevelNode } from "modhost/node";
import type { Module } from "../../../core/types.ts";

export function followDamage(module: Module, { blocks: { damaged } }: Pick<LowLevelNode, "blocks">): void {
  const show = () => {
    const { problem } = damaged;
    if (problem === undefined) module.set_status("info", "all damaged blocks that reads found are stored again");
    else module.set_status("warn", problem);
  };
  damaged.onChange = show;
  module.on_release("the status of damaged blocks", () => {
    damaged.onChange = undefined;
  });
  if (damaged.problem !== undefined) show();
}
