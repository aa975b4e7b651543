import { operationOf } from "../operations/index.ts";
import { commandOf } from "./commands/from_table.ts";

export const command = commandOf(operationOf("reopen"), {
  about: "SIGUSR2 does the same. What could not be opened goes on in the file that it has, and the log tells why.",
});
