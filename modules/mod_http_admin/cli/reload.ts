import { operationOf } from "../operations/index.ts";
import { commandOf } from "./commands/from_table.ts";

export const command = commandOf(operationOf("reload"), {
  positional: ["name"],
  about: [
    "The exit code is 0 when the new instance serves, 1 when the reload was refused or has failed, and 3 when no server",
    "runs. A failure names the file, the line and what is there; the running instance goes on then.",
  ].join("\n"),
});
