/** What reaches out of the node into the system that it runs on. */
import { type Option, raw, value } from "../command.ts";
import { fields } from "../shape.ts";
import { later } from "./later.ts";

const place = (what: string, ...aliases: readonly string[]): Option => ({
  type: "string",
  aliases,
  help: `Folder where ${what} are mounted; by default what the config says.`,
});

export const commands = later({
  mount: {
    help: "Mounts the node as folders.",
    options: { "ipfs-path": place("contents", "f", "store-path"), "ipns-path": place("names", "n", "name-path") },
    returns: value(
      fields("Config", { IPFS: "string", IPNS: "string", FuseAllowOther: "bool", STORE: "string", NAME: "string" }),
    ),
  },
  update: {
    help: "Tells how updates are had, and which versions are known.",
    arguments: [{ name: "args", variadic: true, help: "Of no effect here." }],
    returns: raw,
  },
});
