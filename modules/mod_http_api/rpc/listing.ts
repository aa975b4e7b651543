/** The command tree as listed by `commands`. */
import type { Option, TableNode } from "./command.ts";

export interface ListedCommand {
  readonly Name: string;
  readonly Subcommands: readonly ListedCommand[];
  readonly Options: readonly { readonly Names: readonly string[] }[];
}

/** Name of the root, as in the reference. */
const rootName = "ipfs";

/** With `flags`, the options of every command are listed; those of the root always are. */
export function commandTree({ path, name, entry, children }: TableNode, flags: boolean): ListedCommand {
  const isRoot = path === "";
  return {
    Name: isRoot ? rootName : name,
    Subcommands: [...children.values()].map((child) => commandTree(child, flags)),
    Options: flags || isRoot ? Object.entries(entry.options).flatMap(([long, option]) => namesOf(long, option)) : [],
  };
}

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
