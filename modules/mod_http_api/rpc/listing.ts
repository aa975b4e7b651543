/** The command tree as listed by `commands`. */
import type { Command, CommandTree, Group, Option, TableNode } from "./command.ts";
import { isListedAt, type Level } from "./levels.ts";

export interface ListedCommand {
  readonly Name: string;
  readonly Subcommands: readonly ListedCommand[];
  readonly Options: readonly { readonly Names: readonly string[] }[];
}

/** Name of the root, as in the reference. */
const rootName = "ipfs";

/** With `flags`, the options of every command are listed; those of the root always are. */
export function commandTree({ root, level }: CommandTree, flags: boolean): ListedCommand {
  return listed(root, flags, level);
}

function listed(node: TableNode, flags: boolean, level: Level): ListedCommand {
  const { path, name, entry } = node;
  const isRoot = path === "";
  return {
    Name: isRoot ? rootName : name,
    Subcommands: childrenAt(node, level).map((child) => listed(child, flags, level)),
    Options: flags || isRoot ? optionsAt(entry, level).flatMap(([long, option]) => namesOf(long, option)) : [],
  };
}

/** What a level lists below a command or group. */
const childrenAt = ({ children }: TableNode, level: Level): TableNode[] =>
  [...children.values()].filter(({ entry }) => isListedAt(entry, level));

/** The options of its own that a level lists. */
export const optionsAt = ({ options }: Command | Group, level: Level): [name: string, option: Option][] =>
  Object.entries(options).filter(([, option]) => isListedAt(option, level));

/** Hidden options are accepted but not listed. */
function namesOf(name: string, { aliases = [], hidden }: Option): { Names: readonly string[] }[] {
  return hidden === true ? [] : [{ Names: [name, ...aliases] }];
}

/** One line per command and per listed flag, sorted. */
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
