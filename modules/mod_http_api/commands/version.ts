/** `version`: versions of this program and its dependencies. */
import { versionFacts } from "modhost/node";
import { type Commands, readCommand, stream, value } from "../rpc/command.ts";
import { fields } from "../rpc/shape.ts";

export const commands = {
  version: readCommand({
    help: "Shows the version of the node.",
    readOnly: true,
    options: {
      number: { type: "bool", aliases: ["n"], help: "Print only the version number." },
      commit: { type: "bool", help: "Also print the commit." },
      repo: { type: "bool", help: "Print the version of the repo." },
      all: { type: "bool", help: "Print all details." },
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
    // Does not use the node, so that it works while no node is open.
    run({ level: { version, repo } }) {
      const { commit, system, golang } = versionFacts();
      return { Version: version, Commit: commit, Repo: repo, System: system, Golang: golang };
    },
    text({ Version, Commit, Repo, System, Golang }, { options, level: { program } }) {
      const committed = Commit === "" ? Version : `${Version}-${Commit}`;
      const lines = [`${program} version: ${committed}`, `Repo version: ${Repo}`, `System version: ${System}`];
      if (options.all === true) return `${lines.join("\n")}\nGolang version: ${Golang}\n`;
      if (options.repo === true) return `${Repo}\n`;
      const shown = options.commit === true ? committed : Version;
      return options.number === true ? `${shown}\n` : `ipfs version ${shown}\n`;
    },
  }),
  "version/check": readCommand({
    help: "Shows whether peers run a newer version of this program.",
    about: "Only counts peers in the routing table that have reported this program, and sends no request.",
    since: "0.43",
    options: {
      "min-percent": {
        type: "int",
        aliases: ["t"],
        default: 5,
        help: "Percentage of these peers that must run a newer version.",
      },
    },
    returns: value(
      fields("VersionCheckOutput", {
        UpdateAvailable: "bool",
        RunningVersion: "string",
        GreatestVersion: "string",
        PeersSampled: "int",
        WithGreaterVersion: "int",
      }),
    ),
    async run({ node, options: { "min-percent": minPercent } }) {
      const checked = await node.version.check({ minPercent });
      return {
        UpdateAvailable: checked.updateAvailable,
        RunningVersion: checked.runningVersion,
        GreatestVersion: checked.greatestVersion,
        PeersSampled: checked.peersSampled,
        WithGreaterVersion: checked.withGreaterVersion,
      };
    },
    text: ({ UpdateAvailable, RunningVersion, GreatestVersion, PeersSampled, WithGreaterVersion }) =>
      UpdateAvailable
        ? `${WithGreaterVersion} of ${PeersSampled} nodes run a greater version than ${RunningVersion}: ${GreatestVersion}\n`
        : `${RunningVersion} is up to date with ${PeersSampled} nodes\n`,
  }),
  "version/deps": readCommand({
    help: "Lists the installed packages, this one first.",
    returns: stream(fields("Dependency", { Path: "string", Version: "string", ReplacedBy: "string", Sum: "string" })),
    async *run({ node }) {
      for await (const { path, version, replacedBy, sum } of node.version.deps()) {
        yield { Path: path, Version: version, ReplacedBy: replacedBy, Sum: sum };
      }
    },
    text: ({ Path, Version }) => `${Path}@${Version}\n`,
  }),
} satisfies Commands;
