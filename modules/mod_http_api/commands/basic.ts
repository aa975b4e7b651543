/** What needs no store: what there is, and which version it is. */
import { type Commands, defineCommand, value } from "../rpc/command.ts";
import { commandLines, commandTree, type ListedCommand } from "../rpc/listing.ts";
import { fields } from "../rpc/shape.ts";
import { versionFacts } from "../rpc/version.ts";

export const commands = {
  commands: defineCommand({
    help: "Lists all commands.",
    readOnly: true,
    options: { flags: { type: "bool", aliases: ["f"], help: "List the flags of each command, too." } },
    returns: value(
      fields("Command", { Name: "string", Subcommands: ["any"], Options: [fields({ Names: ["string"] })] }),
    ),
    run: ({ table, options }) => commandTree(table.root, options.flags === true),
    text: (root) => `${commandLines(root as ListedCommand).join("\n")}\n`,
  }),
  version: defineCommand({
    help: "Tells the version of the node.",
    readOnly: true,
    options: {
      number: { type: "bool", aliases: ["n"], help: "Print the version number alone." },
      commit: { type: "bool", help: "Print the commit, too." },
      repo: { type: "bool", help: "Print the version of the repo." },
      all: { type: "bool", help: "Print all there is to tell." },
    },
    returns: value(
      fields("VersionOutput", {
        Version: "string",
        Commit: "string",
        Repo: "string",
        System: "string",
        Golang: "string",
      }),
    ),
    run: () => versionFacts(),
    text({ Version, Commit, Repo, System, Golang }, { options }) {
      const committed = Commit === "" ? Version : `${Version}-${Commit}`;
      const lines = [`go-ipfs version: ${committed}`, `Repo version: ${Repo}`, `System version: ${System}`];
      if (options.all === true) return `${lines.join("\n")}\nGolang version: ${Golang}\n`;
      if (options.repo === true) return `${Repo}\n`;
      const shown = options.commit === true ? committed : Version;
      return options.number === true ? `${shown}\n` : `ipfs version ${shown}\n`;
    },
  }),
} satisfies Commands;
