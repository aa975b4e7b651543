import { namedCommand } from "./common/named.ts";

export const command = namedCommand({
  name: "rollback",
  help: "Return to the version of a module that was installed before",
  about: "A second call undoes the first.",
  change: (packages, module) => packages.rollBack(module),
  done: (module, { version }) => `${module} is at ${version} again`,
});
