import { type Command, counted } from "../../../core/cli/index.ts";
import type { TreeFault } from "../store/tree.ts";
import { call, socketOption, workplaceOf } from "./common/work.ts";

export const command: Command = {
  name: "verify",
  help: "Compare the files of installed modules with those that were installed",
  options: socketOption,
  about: "Exit codes: 0 everything is as it was installed, 1 a file is changed, missing or added.",
  async run(context) {
    const workplace = await workplaceOf(context);
    const faults =
      workplace.kind === "here"
        ? await workplace.packages.verify()
        : await call<Record<string, TreeFault[]>>(workplace.socket, "GET", "/packages/verify");
    const wrong = Object.entries(faults).filter(([, list]) => list.length > 0);
    context.output.show(faults, () => {
      if (wrong.length === 0) return `${counted(Object.keys(faults).length, "module")}: as installed`;
      return wrong
        .flatMap(([module, list]) => list.map(({ path, fault }) => `${module}: ${path} is ${fault}`))
        .concat("modhost add --locked fetches the files again")
        .join("\n");
    });
    return wrong.length === 0 ? 0 : 1;
  },
};
