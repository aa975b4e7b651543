/** The command tree as listed by `commands`. */
import type { Command, CommandNode, CommandTree, Group, Option } from "./command.ts";
import { isListedAt, type Level } from "./levels.ts";

export interface ListedCommand {
  readonly Name: string;
  readonly Subcommands: readonly ListedCommand[];
  readonly Options: readonly { readonly Names: readonly string[] }[];
}

/** Name of the root, as in go-ipfs. */
const rootName = "ipfs";

/** With `flags`, lists the options of every command. The options of the root are always listed. */
export function commandTree({ root, level }: CommandTree, flags: boolean): ListedCommand {
  return listed(root, flags, level);
}

function listed(node: CommandNode, flags: boolean, level: Level): ListedCommand {
  const { path, name, entry } = node;
  const isRoot = path === "";
  return {
    Name: isRoot ? rootName : name,
    Subcommands: childrenAt(node, level).map((child) => listed(child, flags, level)),
    Options: flags || isRoot ? optionsAt(entry, level).flatMap(([long, option]) => namesOf(long, option)) : [],
  };
}

/** Returns the children of a command or group that the level lists. */
const childrenAt = ({ children }: CommandNode, level: Level): CommandNode[] =>
  [...children.values()].filter(({ entry }) => isListedAt(entry, level));

/** Returns the entry's own options that the level lists. */
export const optionsAt = ({ options }: Command | Group, level: Level): [name: string, option: Option][] =>
  Object.entries(options).filter(([, option]) => isListedAt(option, level));

/** Hidden options are accepted but not listed. */
function namesOf(name: string, { aliases = [], hidden }: Option): { Names: readonly string[] }[] {
  return hidden === true ? [] : [{ Names: [name, ...aliases] }];
}

/** Returns one line per command and per listed flag, sorted. */
export function commandLines(root: ListedCommand): string[] {
  return [root.Name, ...root.Subcommands.flatMap((child) => linesOf(child, root.Name))].sort();
}

function linesOf({ Name, Subcommands, Options }: ListedCommand, above: string): string[] {
  const path = `${above} ${Name}`;
  const flags = Options.map(({ Names }) =>
    Names.map((name) => `${path} ${name.length === 1 ? "-" : "--"}${name}`).join(" / "),
  );
  return [path, ...flags, ...Subcommands.flatMap((child) => linesOf(child, path))];
}
