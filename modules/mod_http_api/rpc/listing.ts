/** What the table tells of itself: the answer of `commands`. */
import type { Option } from "./command.ts";
import type { TableNode } from "./table.ts";

export interface ListedCommand {
  readonly Name: string;
  readonly Subcommands: readonly ListedCommand[];
  readonly Options: readonly { readonly Names: readonly string[] }[];
}

/** The name of the tree itself. */
const rootName = "ipfs";

/** `flags` lists those of every command; those of the root are always there. */
export function commandTree({ path, name, entry, children }: TableNode, flags: boolean): ListedCommand {
  const isRoot = path === "";
  return {
    Name: isRoot ? rootName : name,
    Subcommands: [...children.values()].map((child) => commandTree(child, flags)),
    Options: flags || isRoot ? Object.entries(entry.options).flatMap(([long, option]) => namesOf(long, option)) : [],
  };
}

/** A hidden option is accepted and not spoken of. */
function namesOf(name: string, { aliases = [], hidden }: Option): { Names: readonly string[] }[] {
  return hidden === true ? [] : [{ Names: [name, ...aliases] }];
}

/** A line for each command, and for each of its flags where they are listed; sorted. */
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
