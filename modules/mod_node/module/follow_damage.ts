/** Shows lost and damaged blocks in the status of the module, for the doctor and the dashboard. */
import type { LowLevelNode } from "modhost/node";
import type { Module } from "../../../core/types.ts";

export function followDamage(module: Module, { blocks: { damaged } }: Pick<LowLevelNode, "blocks">): void {
  const show = () => {
    const { problem } = damaged;
    if (problem === undefined) module.set_status("info", "All damaged blocks that were found are stored again");
    else module.set_status("warn", problem);
  };
  damaged.onChange = show;
  module.on_release("the status of damaged blocks", () => {
    damaged.onChange = undefined;
  });
  if (damaged.problem !== undefined) show();
}
