/** Commands that change one installed module. */
import { type Command, showChange, UsageError } from "../../../../core/cli/index.ts";
import type { Change } from "../../../../core/types.ts";
import type { LockedModule } from "../../lockfile/format.ts";
import type { Packages } from "../../packages.ts";
import { call, showDone, socketOption, workplaceOf } from "./work.ts";

interface NamedCommand extends Pick<Command, "name" | "help" | "about"> {
  /** Does it without a server. */
  change(packages: Packages, module: string): Promise<LockedModule>;
  /** Returns a text about the change, for people. */
  done(module: string, changed: LockedModule): string;
}

/** Returns a command that calls the operation of its name with the name of a module. */
export function namedCommand({ change, done, ...described }: NamedCommand): Command {
  return {
    ...described,
    arguments: "NAME",
    options: socketOption,
    completes: "modules",
    async run(context) {
      const [module, extra] = context.args;
      if (module === undefined || extra !== undefined)
        throw new UsageError(`${described.name} takes the name of one module`);
      const workplace = await workplaceOf(context);
      if (workplace.kind === "here") {
        const changed = await change(workplace.packages, module);
        return showDone(context, done(module, changed));
      }
      const path = `/packages/${encodeURIComponent(module)}/${described.name}`;
      return showChange(context, await call<Change>(workplace.socket, "POST", path, {}));
    },
  };
}
