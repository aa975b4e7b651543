import { look, lookedAt, lookOptions } from "./admin/running.ts";
import type { Command } from "./command.ts";
import { filesArgument } from "./hosted.ts";
import { columns } from "./output.ts";

export const modules: Command = {
  name: "modules",
  arguments: filesArgument,
  help: "List the modules with their status, file, dependencies and resources; exit code 1 if one has failed",
  about: lookedAt,
  options: lookOptions,
  async run(context) {
    const { output } = context;
    const states = await look(context, async (looked) => looked.modules());
    output.show(states, () => {
      const rows = states.map(({ name, host, status, run, file, depends, holds, note }) => {
        const resources = Object.entries(holds).map(([kind, count]) => `${count} ${kind}`);
        return [name, host, status, run, depends.join(" "), resources.join(", "), file ?? "", note ?? ""];
      });
      return columns([["MODULE", "HOST", "STATUS", "RUN", "DEPENDS ON", "HOLDS", "FILE", "NOTE"], ...rows]);
    });
    return states.some(({ status }) => status === "failed") ? 1 : 0;
  },
};
