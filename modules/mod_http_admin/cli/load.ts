import { resolve } from "node:path";
import { operationOf } from "../operations/index.ts";
import { commandOf } from "./commands/from_table.ts";

export const command = commandOf(operationOf("load"), {
  positional: ["name"],
  // Paths are relative to the command's working directory and not to the server's.
  resolve: ({ cwd }, { name, ...others }) => {
    const isPath = String(name).startsWith(".") || String(name).includes("/");
    return { ...others, name: isPath && !String(name).startsWith("@") ? resolve(cwd, String(name)) : name };
  },
});
