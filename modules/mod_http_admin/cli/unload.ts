import { operationOf } from "../operations/index.ts";
import { commandOf } from "./commands/from_table.ts";

export const command = commandOf(operationOf("unload"), { positional: ["name"], completes: "modules" });
