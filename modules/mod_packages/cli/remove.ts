import { namedCommand } from "./common/named.ts";

export const command = namedCommand({
  name: "remove",
  help: "Remove a module that modhost add has installed",
  about: "The data of the module stays in data_path.",
  change: (packages, module) => packages.remove(module),
  done: (module, { version }) => `${module} ${version} is removed`,
});
