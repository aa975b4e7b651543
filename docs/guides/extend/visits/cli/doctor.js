/** Checks of `modhost doctor` on the file of visits. */
import { join } from "node:path";
import { problem } from "modhost/cli";
import { readCounts } from "../counts.js";

/** @type {readonly import("modhost/cli").Check[]} */
export const checks = [
  {
    name: "visits",
    help: "The file of visits can be read",
    run({ data }) {
      const file = join(data, "visits", "counts.json");
      try {
        readCounts(file);
        return [];
      } catch {
        return [problem(`The visits in ${file} cannot be read`, "restore the file from a backup, or remove it")];
      }
    },
  },
];
