/** The tree of commands. */
import { failure } from "modhost/node";
import {
  type Command,
  type CommandNode,
  type Commands,
  type CommandTree,
  type Group,
  isCommand,
  nothing,
  type Option,
  type Options,
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
  timeout: { type: "string", unset: [""], help: 'Timeout of the call, such as "30s" or "1m".' },
  "api-auth": { type: "string", since: "0.43", secret: true, help: "The secret of a call; has no effect here." },
  "repo-dir": { type: "string", since: "0.43", help: "Path of the repo; has no effect here." },
  "config-file": { type: "string", since: "0.43", help: "Path of the configuration; has no effect here." },
} as const satisfies Options;

export const globalOptionNames: ReadonlySet<string> = new Set(Object.keys(globalOptions));

export interface TableSettings {
  /** Default: the level of go-ipfs 0.9. */
  readonly level?: Level;
  /** Declarations that replace those of the parts at the level 0.43. */
  readonly kubo043?: readonly Commands[];
}

export class Table implements CommandTree {
  readonly root: CommandNode;
  readonly level: Level;
  readonly #parts: readonly Commands[];
  readonly #kubo043: readonly Commands[];
  readonly #entries: ReadonlyMap<string, Command | Group>;
  readonly #others = new Map<LevelName, Table>();

  /** @throws Error for a command that is declared twice */
  constructor(parts: readonly Commands[], { level = levels["0.9"], kubo043 = [] }: TableSettings = {}) {
    this.level = level;
    this.#parts = parts;
    this.#kubo043 = kubo043;
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

  /**
   * Checks the declarations. Only tests call this; at startup declarations are taken as they are.
   *
   * @throws Error for inconsistent declarations, which are bugs /
   */
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
   * Returns the same commands at a level. `chosen` are declarations that an operator has selected
   * in place of the level's own; calls of these commands never clash.
   */
  at(name: LevelName, chosen: Commands = {}): Table {
    if (Object.keys(chosen).length > 0) return this.#create(name, chosen);
    const known = this.#others.get(name) ?? this.#create(name, {});
    this.#others.set(name, known);
    return known;
  }

  #create(name: LevelName, chosen: Commands): Table {
    const own = levels[name];
    const clashes = Object.fromEntries(Object.entries(own.clashes).filter(([path]) => !(path in chosen)));
    const declared = Object.assign({}, ...this.#parts, ...(name === "0.43" ? this.#kubo043 : []), chosen);
    return new Table([withoutRemoved(declared, own)], { level: { ...own, clashes } });
  }

  /** Returns the entry at a path; undefined if there is none. */
  node(path: string): CommandNode | undefined {
    if (path === "") return this.root;
    return this.#entries.has(path) ? this.node(groupOf(path))?.children.get(nameOf(path)) : undefined;
  }

  /**
   * Returns a table with only the read-only commands and their groups, for the gateway port. At the
   * level 0.43 it is empty.
   */
  readOnly(): Table {
    const readOnly: Record<string, Command | Group> = {};
    if (this.level.traits.name !== "0.9") return new Table([readOnly], { level: this.level });
    for (const [path, command] of this.#all()) {
      if (command.readOnly !== true) continue;
      readOnly[path] = command;
      for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
        const above = path.slice(0, at);
        const { entry } = this.node(above) as CommandNode;
        if (!isCommand(entry) || entry.readOnly === true) readOnly[above] = entry;
      }
    }
    return new Table([readOnly], { level: this.level });
  }

  /** Returns all commands that the level lists, sorted by path. */
  commands(): [path: string, command: Command][] {
    return this.#all().filter(([, command]) => isListedAt(command, this.level));
  }

  /**
   * Returns all commands that are served, sorted by path, including those that came with a later
   * level.
   */
  served(): [path: string, command: Command][] {
    return this.#all();
  }

  #all(): [path: string, command: Command][] {
    const all: [string, Command][] = [];
    for (const [path, entry] of this.#entries) if (isCommand(entry)) all.push([path, shownAt(entry, this.level)]);
    return all.sort(([one], [other]) => (one < other ? -1 : 1));
  }
}

/** Omits commands that a level has removed, or makes them return an error. */
function withoutRemoved(declared: Commands, { removed: gone }: Level): Commands {
  const remaining: Record<string, Command | Group> = {};
  for (const [path, entry] of Object.entries(declared)) {
    const parts = path.split("/");
    const above = parts.map((_, at) => parts.slice(0, at + 1).join("/")).find((each) => each in gone);
    if (above === undefined) remaining[path] = entry;
    else if (gone[above] !== undefined) remaining[path] = refusing(gone[above]);
  }
  return remaining;
}

/** Returns a command that always fails with the text. */
const refusing = (text: string): Command =>
  writeCommand({
    help: "Was removed.",
    deprecated: true,
    returns: nothing,
    run() {
      throw failure("COMMAND_REMOVED", { reason: text });
    },
  });

type Entries = readonly (readonly [path: string, entry: Command | Group])[];

/** Groups the entries by the path of the group that they are in. */
function byGroup(entries: ReadonlyMap<string, Command | Group>): ReadonlyMap<string, Entries> {
  return Map.groupBy(entries, ([path]) => groupOf(path));
}

/** Returns a command as a level shows it: the level 0.9 has no fields that came later. */
function shownAt<E extends Command | Group>(entry: E, level: Level): E {
  if (!isCommand(entry) || level.traits.name !== "0.9") return entry;
  const shape = withoutLater(entry.returns.shape);
  return shape === entry.returns.shape ? entry : { ...entry, returns: { ...entry.returns, shape } };
}

interface Tree {
  readonly level: Level;
  below(path: string): Entries;
}

/**
 * Builds its options and children on first access, because startup needs none of them and few calls
 * need all.
 */
class Branch implements CommandNode {
  readonly name: string;
  readonly path: string;
  readonly #declared: Command | Group;
  readonly #tree: Tree;
  readonly #above: CommandNode | undefined;
  #entry: Command | Group | undefined;
  #options: CommandNode["options"] | undefined;
  #children: CommandNode["children"] | undefined;

  constructor(path: string, declared: Command | Group, tree: Tree, above?: CommandNode) {
    this.name = nameOf(path);
    this.path = path;
    this.#declared = declared;
    this.#tree = tree;
    this.#above = above;
  }

  get entry(): Command | Group {
    return (this.#entry ??= shownAt(this.#declared, this.#tree.level));
  }

  get options(): CommandNode["options"] {
    return (this.#options ??= new Map([...(this.#above?.options ?? []), ...this.#own()]));
  }

  get children(): CommandNode["children"] {
    return (this.#children ??= new Map(
      this.#tree.below(this.path).map(([path, entry]) => [nameOf(path), new Branch(path, entry, this.#tree, this)]),
    ));
  }

  *#own(): Generator<[string, { readonly name: string; readonly option: Option }]> {
    for (const [name, option] of Object.entries(this.#declared.options)) {
      const shown = isListedAt(option, this.#tree.level) ? option : later(option);
      for (const each of namesOf(name, option)) yield [each, { name, option: shown }];
    }
  }
}

/**
 * Adapts an option that only a later level has. Clients of that level also send it, without a
 * value, when they do not set it.
 */
const later = (option: Option): Option => ({
  ...option,
  hidden: true,
  ...(option.type !== "bool" && { unset: [...(option.unset ?? []), ""] }),
});

const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
const groupOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf("/")));

const namesOf = (long: string, { aliases = [], hiddenAliases = [] }: Option): readonly string[] => [
  long,
  ...aliases,
  ...hiddenAliases,
];

function checkOptions(path: string, { options }: Command | Group, above: CommandNode["options"]): void {
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
