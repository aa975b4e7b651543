/** The tree of commands. */
import { NodeError } from "modhost/node";
import {
  type Command,
  type Commands,
  type CommandTree,
  type Group,
  isCommand,
  nothing,
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
  readonly #nodes: ReadonlyMap<string, TableNode>;
  readonly #others = new Map<LevelName, Table>();

  /** Builds the tree. @throws Error for inconsistent declarations, which are bugs */
  constructor(parts: readonly Commands[], { level = levels["0.9"], today = [] }: TableSettings = {}) {
    this.level = level;
    this.#parts = parts;
    this.#today = today;
    const entries = new Map<string, Command | Group>();
    for (const [path, entry] of parts.flatMap((part) => Object.entries(part))) {
      if (entries.has(path)) throw new Error(`The command ${path} is declared twice`);
      entries.set(path, entry);
    }
    const nodes = new Map<string, TableNode>();
    const root: Group = { help: "The commands of the node.", options: globalOptions };
    this.root = grow({ path: "", entry: root, above: new Map(), below: byGroup(entries), nodes, level });
    for (const path of entries.keys())
      if (!nodes.has(path)) throw new Error(`The command ${path} has no group above it`);
    this.#nodes = nodes;
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
    return this.#nodes.get(path);
  }

  /** A table with only the read-only commands and their groups, for the gateway port. */
  readOnly(): Table {
    const kept: Record<string, Command | Group> = {};
    for (const [path, command] of this.#all()) {
      if (command.readOnly !== true) continue;
      kept[path] = command;
      for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
        const above = path.slice(0, at);
        const { entry } = this.#nodes.get(above) as TableNode;
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
    for (const [path, { entry }] of this.#nodes) if (isCommand(entry)) all.push([path, entry]);
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
  return Map.groupBy(entries, ([path]) => path.slice(0, Math.max(0, path.lastIndexOf("/"))));
}

interface Growth {
  readonly path: string;
  readonly entry: Command | Group;
  readonly above: TableNode["options"];
  readonly below: ReadonlyMap<string, Entries>;
  readonly nodes: Map<string, TableNode>;
  readonly level: Level;
}

/** A command as a level shows it: without fields that came later, if it is older. */
function shownAt<E extends Command | Group>(entry: E, level: Level): E {
  if (!isCommand(entry) || level.traits.name !== "0.9") return entry;
  const shape = withoutLater(entry.returns.shape);
  return shape === entry.returns.shape ? entry : { ...entry, returns: { ...entry.returns, shape } };
}

function grow({ path, entry, above, below, nodes, level }: Growth): TableNode {
  if (isCommand(entry)) check(path, entry);
  const options = new Map(above);
  for (const [long, option] of Object.entries(entry.options)) {
    for (const each of [long, ...(option.aliases ?? []), ...(option.hiddenAliases ?? [])]) {
      if (options.has(each)) throw new Error(`The option ${each} of ${path} is declared twice`);
      options.set(each, { name: long, option: isListedAt(option, level) ? option : { ...option, hidden: true } });
    }
  }
  const children = new Map<string, TableNode>();
  const node: TableNode = { name: nameOf(path), path, entry: shownAt(entry, level), children, options };
  nodes.set(path, node);
  for (const [at, child] of below.get(path) ?? []) {
    if (isCommand(child) && child.group !== undefined && child.group !== entry) {
      throw new Error(`The command ${at} names another group than ${path}`);
    }
    children.set(nameOf(at), grow({ path: at, entry: child, above: options, below, nodes, level }));
  }
  return node;
}

const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);

function check(path: string, { arguments: declared }: Command): void {
  const names = new Set(declared.map(({ name }) => name));
  if (names.size < declared.length) throw new Error(`Two arguments of ${path} have one name`);
  const early = declared.slice(0, -1).find(({ variadic, stdin }) => variadic === true || stdin !== undefined);
  if (early !== undefined) throw new Error(`The argument ${early.name} of ${path} must be its last one`);
}
