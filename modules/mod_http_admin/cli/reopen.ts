import { operationOf } from "../operations/index.ts";
import { commandOf } from "./commands/from_table.ts";

export const command = commandOf(operationOf("reopen"), {
  about: "SIGUSR2 does the same. A log whose file cannot be opened stays in its current file, and the log says why.",
});
