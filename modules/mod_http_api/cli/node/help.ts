/**
 * Help of `modhost node`, generated from the table of commands. It needs neither a repo nor a
 * daemon.
 */
import { type Command, commandHelp, type HelpSection, type Subcommand } from "../../../../core/cli/index.ts";
import { table } from "../../commands/index.ts";
import type { LevelName } from "../../rpc/levels.ts";
import { openApi } from "../../rpc/openapi.ts";
import { helpText } from "../rpc/call.ts";
import { usageOf } from "../rpc/help.ts";
import { callOptions } from "../rpc/parse.ts";
import { surfaceOf } from "../rpc/surface.ts";
import { program, sharedOptions } from "./repo.ts";

/**
 * Commands and groups under the headings of go-ipfs. Commands that go-ipfs does not show come last.
 */
const headings: Readonly<Record<string, readonly string[]>> = {
  "Basic commands": ["init", "add", "cat", "get", "ls", "refs"],
  "Data structure commands": ["dag", "files", "files chroot", "block", "cid", "multibase"],
  "Advanced commands": [
    ...["daemon", "migrate", "mount", "resolve", "name", "key", "dns", "pin", "repo", "stats", "p2p", "filestore"],
  ],
  "Network commands": ["id", "bootstrap", "swarm", "routing", "dht", "ping", "diag", "bitswap", "pubsub"],
  "Tool commands": ["config", "version", "update", "commands", "log", "shutdown"],
};

/** Returns the help on all commands. `own` are the commands that are not in the table. */
export function nodeHelp(command: Command, own: readonly Command[]): string {
  const rows = new Map([...tableRows(), ...own.map((each) => [each.name, ownRow(each)] as const)]);
  const named = new Set(Object.values(headings).flat());
  const others = [...rows.keys()].filter((name) => !named.has(name)).sort();
  const sections: HelpSection[] = Object.entries({ ...headings, "Other commands": others }).map(([title, names]) => ({
    title,
    rows: names.map((name) => rows.get(name) ?? [name]),
  }));
  const { enc: _, ...options } = { ...sharedOptions, ...callOptions };
  const more = [
    `${program} COMMAND --help, or ${program} help COMMAND, shows the help of a command.`,
    "[0.43]: came with Kubo 0.43; available whatever the option api_level says.",
  ].join("\n");
  return commandHelp({ ...command, options, about: more }, {}, "modhost", sections);
}

/**
 * Returns the help on a command or a group of the table.
 *
 * @throws UsageError if there is none with that name /
 */
export const tableHelp = (words: readonly string[], level: LevelName): string =>
  helpText(surface(level), words, program);

/** Returns every command that is served at a level. */
export const surface = (level: LevelName = "0.9") => surfaceOf(openApi(table.at(level), { served: true }));

/** Returns the same commands for shell completion, without the options that all commands share. */
export function subcommands(): Subcommand[] {
  return [...surface().values()].map(({ path, help, options }) => {
    const rows = options
      .filter(({ shared }) => !shared)
      .flatMap(({ name, aliases, kind, help }) => {
        const type = kind === "flag" ? ("boolean" as const) : ("string" as const);
        return [name, ...aliases].map((each) => [each, { type, help }] as const);
      });
    return { name: path.replaceAll("/", " "), help, options: Object.fromEntries(rows) };
  });
}

const ownRow = ({ name, arguments: taken = "", help }: Command) => [`${name} ${taken}`.trimEnd(), help];

/** Returns a row for each command and group at the top of the table, by name. */
function tableRows(): (readonly [name: string, row: readonly string[]])[] {
  const commands = surface();
  return [...table.root.children.values()].map(({ name, entry, children }) => {
    const command = commands.get(name);
    const usage = command === undefined || children.size > 0 ? name : usageOf(command);
    const marks = entry.deprecated === true ? " (deprecated)" : entry.experimental === true ? " (experimental)" : "";
    const since = entry.since === undefined ? "" : ` [${entry.since}]`;
    return [name, [usage, entry.help.replace(/\.$/, "") + marks + since]];
  });
}
