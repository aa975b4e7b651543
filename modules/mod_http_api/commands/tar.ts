/** Archives as trees. */
import { defineGroup, raw, value } from "../command.ts";
import { later } from "./later.ts";
import { addedItem } from "./shapes.ts";

export const commands = later({
  tar: defineGroup({ help: "Keep tar archives as trees." }),
  "tar/add": {
    help: "Adds a tar archive, entry by entry.",
    file: { name: "file", required: true, help: "The archive." },
    returns: value(addedItem),
  },
  "tar/cat": {
    help: "Gives an archive that was added so.",
    arguments: [{ name: "path", required: true, stdin: "first", help: "The archive." }],
    returns: raw,
  },
});
