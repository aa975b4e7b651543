import type { ModuleState } from "../types.ts";
import { printable } from "../util/text.ts";
import { look, lookedAt, lookOptions } from "./admin/running.ts";
import type { Command } from "./command.ts";
import { filesArgument, labelOf } from "./hosted.ts";
import { columns } from "./output.ts";

export const modules: Command = {
  name: "modules",
  arguments: filesArgument,
  help: "List the modules with their status, file, dependencies and resources; exit code 1 if one has failed",
  about: lookedAt,
  options: {
    permissions: { type: "boolean", help: "List the permissions of each module: declared, granted, used and denied" },
    ...lookOptions,
  },
  async run(context) {
    const { output, options } = context;
    const states = await look(context, async (looked) => looked.modules());
    output.show(states, () => (options.permissions === true ? permissionTable(states) : moduleTable(states)));
    return states.some(({ status }) => status === "failed") ? 1 : 0;
  },
};

function moduleTable(states: readonly ModuleState[]): string {
  const rows = states.map(({ name, host, status, file, depends, holds, note, ...state }) => {
    const resources = Object.entries(holds).map(([kind, count]) => `${count} ${kind}`);
    return [
      name,
      host,
      status,
      runText(state),
      depends.join(" "),
      resources.join(", "),
      file ?? "",
      printable(note ?? ""),
    ];
  });
  return columns([["MODULE", "HOST", "STATUS", "RUNS", "DEPENDS ON", "HOLDS", "FILE", "NOTE"], ...rows]);
}

function permissionTable(states: readonly ModuleState[]): string {
  const rows = states.flatMap((state) => {
    const { permissions = [] } = state;
    return permissions.map(({ text, is_declared, is_granted, is_enforced, used, denied, grant }) => [
      labelOf(state),
      runText(state),
      text,
      is_declared ? "yes" : "no",
      `${is_granted ? "yes" : "no"}${is_enforced ? "" : ", not enforced"}`,
      used === undefined ? "not counted" : String(used),
      denied === undefined ? "not counted" : String(denied),
      // An audit is there to find out what to grant.
      grant === undefined || !(is_enforced || state.is_audited === true) ? "" : `add ${grant}`,
    ]);
  });
  if (rows.length === 0) return "No module declares, has or has used a permission.";
  return columns([["MODULE", "RUNS", "PERMISSION", "DECLARED", "GRANTED", "USED", "DENIED", ""], ...rows]);
}

const runText = ({ run, is_audited }: Pick<ModuleState, "run" | "is_audited">): string =>
  `${run}${is_audited === true ? ", audited" : ""}`;
