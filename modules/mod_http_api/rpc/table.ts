/** The tree of commands. */
import { NodeError } from "modhost/node";
import {
  type Command,
  type Commands,
  type CommandTree,
  type Group,
  isCommand,
  nothing,
  type Option,
  type Options,
  type TableNode,
  writeCommand,
} from "./command.ts";
import { isListedAt, type Level, type LevelName, levels } from "./levels.ts";
import { withoutLater } from "./shape.ts";

/** Options accepted by every command. */
export const globalOptions = {
  config: { type: "string", aliases: ["c"], help: "Path of the configuration; has no effect here." },
  debug: { type: "bool", aliases: ["D"], help: "Debug mode; has no effect here." },
  help: { type: "bool", help: "Show help; has no effect here." },
  h: { type: "bool", help: "Show a short help; has no effect here." },
  local: { type: "bool", aliases: ["L"], deprecated: true, help: "Use no network; use `offline` instead." },
  offline: { type: "bool", help: "Use no network for this call." },
  api: { type: "string", help: "Address of another API; has no effect here." },
  "cid-base": { type: "string", help: "Multibase of CIDs of version 1 in the output." },
  "upgrade-cidv0-in-output": { type: "bool", help: "Write CIDs of version 0 as version 1." },
  encoding: { type: "string", aliases: ["enc"], default: "json", help: "Encoding of the response: json, text or xml." },
  "stream-channels": { type: "bool", help: "Stream the response; has no effect here." },
  timeout: { type: "string", help: 'Time after which the call is given up, such as "30s" or "1m".' },
  "api-auth": { type: "string", since: "0.43", secret: true, help: "The secret of a call; has no effect here." },
  "repo-dir": { type: "string", since: "0.43", help: "Path of the repo; has no effect here." },
  "config-file": { type: "string", since: "0.43", help: "Path of the configuration; has no effect here." },
} as const satisfies Options;

export const globalOptionNames: ReadonlySet<string> = new Set(Object.keys(globalOptions));

export interface TableSettings {
  /** Default: that of go-ipfs 0.9. */
  readonly level?: Level;
  /** The declarations of the level 0.43 that differ from those in the parts, in the place of these. */
  readonly today?: readonly Commands[];
}

export class Table implements CommandTree {
  readonly root: TableNode;
  readonly level: Level;
  readonly #parts: readonly Commands[];
  readonly #today: readonly Commands[];
  readonly #entries: ReadonlyMap<string, Command | Group>;
  readonly #others = new Map<LevelName, Table>();

  /** @throws Error for a command that is declared twice */
  constructor(parts: readonly Commands[], { level = levels["0.9"], today = [] }: TableSettings = {}) {
    this.level = level;
    this.#parts = parts;
    this.#today = today;
    const entries = new Map<string, Command | Group>();
    for (const [path, entry] of parts.flatMap((part) => Object.entries(part))) {
      if (entries.has(path)) throw new Error(`The command ${path} is declared twice`);
      entries.set(path, entry);
    }
    this.#entries = entries;
    const root: Group = { help: "The commands of the node.", options: globalOptions };
    let below: ReadonlyMap<string, Entries> | undefined;
    this.root = new Branch("", root, { level, below: (path) => (below ??= byGroup(entries)).get(path) ?? [] });
  }

  /** For tests: a start takes declarations as they are. @throws Error for inconsistent ones, which are bugs */
  check(): void {
    for (const path of this.#entries.keys()) {
      if (this.node(path) === undefined) throw new Error(`The command ${path} has no group above it`);
    }
    for (const [path, entry] of this.#entries) {
      if (isCommand(entry)) check(path, entry, this.#entries.get(groupOf(path)));
      checkOptions(path, entry, this.node(groupOf(path))?.options ?? new Map());
    }
  }

  /**
   * The same commands at a level. `chosen` are declarations that an operator has chosen in the place of the level's own:
   * no call of them clashes with it.
   */
  at(name: LevelName, chosen: Commands = {}): Table {
    if (Object.keys(chosen).length > 0) return this.#made(name, chosen);
    const known = this.#others.get(name) ?? this.#made(name, {});
    this.#others.set(name, known);
    return known;
  }

  #made(name: LevelName, chosen: Commands): Table {
    const own = levels[name];
    const clashes = Object.fromEntries(Object.entries(own.clashes).filter(([path]) => !(path in chosen)));
    const declared = Object.assign({}, ...this.#parts, ...(name === "0.43" ? this.#today : []), chosen);
    return new Table([withoutGone(declared, own)], { level: { ...own, clashes } });
  }

  /** The entry at a path; undefined if there is none. */
  node(path: string): TableNode | undefined {
    if (path === "") return this.root;
    return this.#entries.has(path) ? this.node(groupOf(path))?.children.get(nameOf(path)) : undefined;
  }

  /** A table with only the read-only commands and their groups, for the gateway port. */
  readOnly(): Table {
    const kept: Record<string, Command | Group> = {};
    for (const [path, command] of this.#all()) {
      if (command.readOnly !== true) continue;
      kept[path] = command;
      for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
        const above = path.slice(0, at);
        const { entry } = this.node(above) as TableNode;
        if (!isCommand(entry) || entry.readOnly === true) kept[above] = entry;
      }
    }
    return new Table([kept], { level: this.level });
  }

  /** All commands that the level lists, sorted by path. */
  commands(): [path: string, command: Command][] {
    return this.#all().filter(([, command]) => isListedAt(command, this.level));
  }

  /** All that are served, sorted by path: also what came with a later level. */
  served(): [path: string, command: Command][] {
    return this.#all();
  }

  #all(): [path: string, command: Command][] {
    const all: [string, Command][] = [];
    for (const [path, entry] of this.#entries) if (isCommand(entry)) all.push([path, shownAt(entry, this.level)]);
    return all.sort(([one], [other]) => (one < other ? -1 : 1));
  }
}

/** What a level has taken away is not there, or says so. */
function withoutGone(declared: Commands, { gone }: Level): Commands {
  const left: Record<string, Command | Group> = {};
  for (const [path, entry] of Object.entries(declared)) {
    const parts = path.split("/");
    const above = parts.map((_, at) => parts.slice(0, at + 1).join("/")).find((each) => each in gone);
    if (above === undefined) left[path] = entry;
    else if (gone[above] !== undefined) left[path] = refusing(gone[above]);
  }
  return left;
}

/** Answers with the same failure whatever is asked. */
const refusing = (text: string): Command =>
  writeCommand({
    help: "Was removed.",
    deprecated: true,
    returns: nothing,
    run() {
      throw new NodeError(text);
    },
  });

type Entries = readonly (readonly [path: string, entry: Command | Group])[];

/** What is right below each group, by its path. */
function byGroup(entries: ReadonlyMap<string, Command | Group>): ReadonlyMap<string, Entries> {
  return Map.groupBy(entries, ([path]) => groupOf(path));
}

/** A command as a level shows it: without fields that came later, if it is older. */
function shownAt<E extends Command | Group>(entry: E, level: Level): E {
  if (!isCommand(entry) || level.traits.name !== "0.9") return entry;
  const shape = withoutLater(entry.returns.shape);
  return shape === entry.returns.shape ? entry : { ...entry, returns: { ...entry.returns, shape } };
}

interface Tree {
  readonly level: Level;
  below(path: string): Entries;
}

/** Made of its declaration when it is asked for: a start needs none, and few need all. */
class Branch implements TableNode {
  readonly name: string;
  readonly path: string;
  readonly #declared: Command | Group;
  readonly #tree: Tree;
  readonly #above: TableNode | undefined;
  #entry: Command | Group | undefined;
  #options: TableNode["options"] | undefined;
  #children: TableNode["children"] | undefined;

  constructor(path: string, declared: Command | Group, tree: Tree, above?: TableNode) {
    this.name = nameOf(path);
    this.path = path;
    this.#declared = declared;
    this.#tree = tree;
    this.#above = above;
  }

  get entry(): Command | Group {
    return (this.#entry ??= shownAt(this.#declared, this.#tree.level));
  }

  get options(): TableNode["options"] {
    return (this.#options ??= new Map([...(this.#above?.options ?? []), ...this.#own()]));
  }

  get children(): TableNode["children"] {
    return (this.#children ??= new Map(
      this.#tree.below(this.path).map(([path, entry]) => [nameOf(path), new Branch(path, entry, this.#tree, this)]),
    ));
  }

  *#own(): Generator<[string, { readonly name: string; readonly option: Option }]> {
    for (const [name, option] of Object.entries(this.#declared.options)) {
      const shown = isListedAt(option, this.#tree.level) ? option : { ...option, hidden: true };
      for (const each of namesOf(name, option)) yield [each, { name, option: shown }];
    }
  }
}

const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
const groupOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf("/")));

const namesOf = (long: string, { aliases = [], hiddenAliases = [] }: Option): readonly string[] => [
  long,
  ...aliases,
  ...hiddenAliases,
];

function checkOptions(path: string, { options }: Command | Group, above: TableNode["options"]): void {
  const names = new Set(above.keys());
  for (const each of Object.entries(options).flatMap(([long, option]) => namesOf(long, option))) {
    if (names.has(each)) throw new Error(`The option ${each} of ${path} is declared twice`);
    names.add(each);
  }
}

function check(path: string, { arguments: declared, group }: Command, above: Command | Group | undefined): void {
  if (group !== undefined && group !== above) {
    throw new Error(`The command ${path} names another group than ${groupOf(path)}`);
  }
  const names = new Set(declared.map(({ name }) => name));
  if (names.size < declared.length) throw new Error(`Two arguments of ${path} have one name`);
  const early = declared.slice(0, -1).find(({ variadic, stdin }) => variadic === true || stdin !== undefined);
  if (early !== undefined) throw new Error(`The argument ${early.name} of ${path} must be its last one`);
}
