/**
 * Parses a query and a body into a typed call. Errors have the messages of go-ipfs and are
 * checked in its order. The parser does not depend on HTTP.
 */
import { failure, kuboPath, pathOfUri, quote } from "modhost/node";
import {
  type Argument,
  type Command,
  type CommandNode,
  type Group,
  isCommand,
  type NamedOption,
  type Options,
} from "./command.ts";
import { parseMediaType } from "./media_type.ts";
import { convert } from "./option_values.ts";
import { bytesOf, fromBytes, pairsOf, textOf, type Value } from "./query_string.ts";
import { globalOptions, type Table } from "./table.ts";
import { type FileTree, noFiles, treeOf, type UploadPart } from "./uploads.ts";

/** An invalid call, which gets status 400 and plain text. */
export class Refusal extends Error {
  override readonly name = "Refusal";
}

export interface FoundCommand {
  readonly node: CommandNode;
  /**
   * The last path component if it is not a command: it becomes the first argument, and is "" after
   * a slash at the end. As in go-ipfs, a command without arguments takes and ignores it.
   */
  readonly argument: string | undefined;
}

/** Looks up the path components after `/api/v0/`. Returns undefined if there is no such command. */
export function find(table: Table, components: readonly string[]): FoundCommand | undefined {
  let node = table.root;
  for (const component of components.slice(0, -1)) {
    const child = node.children.get(component);
    if (child === undefined) return undefined;
    node = child;
  }
  const last = components.at(-1) ?? "";
  const child = node.children.get(last);
  if (child !== undefined) return { node: child, argument: undefined };
  const isServed = isCommand(node.entry) && !table.level.httpTraits.commandLineOnly.includes(`${node.path}/${last}`);
  return isServed ? { node, argument: last } : undefined;
}

export interface Body {
  /** The Content-Type header; "" if there is none. */
  readonly type: string;
  /**
   * Reads the parts of a multipart body lazily. Gets the parsed options, so that `timeout` covers
   * the reading.
   */
  parts(options: Parsed["options"]): AsyncIterable<UploadPart>;
}

export interface ParseOptions {
  /** Whether `;` separates pairs of the query; true by default. */
  readonly semicolons?: boolean;
  /** Whether arguments that are content paths may be URIs; false by default. */
  readonly uris?: boolean;
}

export interface Parsed {
  readonly path: string;
  readonly entry: Command | Group;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** By long name, with defaults filled in. */
  readonly options: Readonly<Record<string, unknown>>;
  /** All argument values, as text. */
  readonly given: readonly string[];
  /** Number of values in `given` that do not come from the body. */
  readonly queried: number;
  readonly files: FileTree;
  /** Whether the body is multipart. */
  readonly hasBody: boolean;
}

/** Parses a call. @throws Refusal */
export async function parse(
  { node, argument }: FoundCommand,
  query: string,
  body: Body,
  { semicolons, uris = false }: ParseOptions = {},
): Promise<Parsed> {
  const values: Value[] = argument === undefined ? [] : [argument];
  const flags = query === "" ? noFlags : sort(node, pairsOf(query, semicolons), values);
  const { entry } = node;
  const declared = isCommand(entry) ? entry.arguments : [];
  const isMultipart = checkBody(body.type);
  const missing = isMultipart ? undefined : missingFile(entry, values.length);
  if (missing !== undefined) throw new Refusal(`file argument '${missing}' is required`);
  const options = typed(node, flags);

  let files = isMultipart ? treeOf(body.parts(options)) : noFiles;
  const last = declared.at(-1);
  const queried = values.length;
  if (isMultipart && last?.stdin !== undefined && readsBody(declared, last, values.length)) {
    await addLines(values, files, last.stdin);
    files = noFiles;
  }
  const short = missingArgument(declared, values.length);
  if (short !== undefined) throw new Refusal(`argument ${quote(short)} is required`);
  const given = values.map(textOf);
  const assigned = assign(declared, values, uris);
  return { path: node.path, entry, arguments: assigned, options, given, queried, files, hasBody: isMultipart };
}

const noFlags: ReadonlyMap<string, readonly string[]> = new Map();

/** Splits the query: appends values of `arg` to `values` and returns known flags by long name. */
function sort(node: CommandNode, pairs: Iterable<[string, Value]>, values: Value[]): Map<string, string[]> {
  const flags = new Map<string, string[]>();
  const spelled = new Map<string, string[]>();
  for (const [name, value] of pairs) {
    if (name === "arg") {
      values.push(value);
      continue;
    }
    const option = node.options.get(name)?.option;
    if (option === undefined) continue;
    // Clients of the other level send this name even when they do not set the option.
    if (value === "" && option.hiddenAliases?.includes(name) === true) continue;
    const before = spelled.get(name);
    if (before === undefined) spelled.set(name, [textOf(value)]);
    else before.push(textOf(value));
  }
  for (const [name, given] of spelled) {
    const known = node.options.get(name);
    if (known === undefined) continue;
    if (known.option.type !== "list" && given.length > 1) {
      throw new Refusal(`expected key ${known.name} to have only a single value, received [${given.join(" ")}]`);
    }
    flags.set(known.name, given);
  }
  return flags;
}

/**
 * True for a multipart body; any other body is ignored.
 *
 * @throws Refusal for a malformed multipart type /
 */
function checkBody(text: string): boolean {
  if (text === "") return false;
  const { type, parameters, fault } = parseMediaType(text);
  if (type !== "multipart/form-data") return false;
  if (fault !== undefined) throw new Refusal("request Content-Type isn't multipart/form-data");
  if (!parameters.has("boundary")) throw new Refusal("no multipart boundary param in Content-Type");
  return true;
}

/**
 * Returns the name of the missing file argument. Undefined if a string argument is missing too,
 * because that is reported instead.
 */
function missingFile(entry: Command | Group, count: number): string | undefined {
  if (!isCommand(entry) || entry.file?.required !== true) return undefined;
  const strings = entry.arguments.filter(({ required }) => required === true).length;
  return count >= strings ? entry.file.name : undefined;
}

/** Returns the typed options by long name, including defaults. */
function typed(node: CommandNode, flags: ReadonlyMap<string, readonly string[]>): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const [name, given] of flags) {
    const { type, unset = [] } = (node.options.get(name) as NamedOption).option;
    if (type === "list") {
      options[name] = given;
      continue;
    }
    const [text = ""] = given;
    if (unset.includes(text)) continue;
    const value = refuse(() => convert(type, text, name));
    if (typeof value === "boolean" || !unset.includes(value)) options[name] = value;
  }
  const defaults = defaultsOf(node);
  for (const name in defaults) options[name] ??= defaults[name];
  return options;
}

const knownDefaults = new WeakMap<CommandNode, Readonly<Record<string, unknown>>>();

/** Returns the defaults of all options that have one, by long name. */
function defaultsOf(node: CommandNode): Readonly<Record<string, unknown>> {
  let defaults = knownDefaults.get(node);
  if (defaults === undefined) {
    const all = [...node.options.values()].filter(({ option }) => option.default !== undefined);
    defaults = Object.fromEntries(all.map(({ name, option }) => [name, option.default]));
    knownDefaults.set(node, defaults);
  }
  return defaults;
}

function refuse<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw new Refusal((error as Error).message);
  }
}

/**
 * Returns whether argument values are read from the body; with `first`, only if a value is missing.
 */
function readsBody(declared: readonly Argument[], { stdin, required }: Argument, count: number): boolean {
  if (stdin === "lines") return true;
  const wanted = declared.filter((argument) => argument.required === true).length;
  return required === true ? count < wanted : count < declared.length;
}

/** Reads values from the first part of the body, one per line. */
async function addLines(values: Value[], files: FileTree, how: "lines" | "first"): Promise<void> {
  try {
    for await (const entry of files.entries()) {
      if (entry.kind === "directory") return;
      const source = entry.kind === "file" ? entry.body : [Buffer.from(entry.target)];
      for await (const line of linesOf(source)) {
        values.push(line);
        if (how === "first") return;
      }
      return;
    }
  } catch (error) {
    throw new Refusal((error as Error).message);
  }
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
/**
 * Maximum bytes of one argument, such as a CID that contains its block, and of all arguments of a
 * body. They are all in memory.
 */
const MAX_LINE = 2 * 1024 * 1024;
const MAX_LINES = 64 * 1024 * 1024;
/** Bytes of memory that an argument takes in addition to its text. */
const LINE_COST = 64;

/**
 * Splits into lines without line endings; the last line need not be terminated.
 *
 * @throws NodeError for lines that exceed the limits /
 */
export async function* linesOf(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Value> {
  let rest: Uint8Array[] = [];
  let lineBytes = 0;
  let totalBytes = 0;
  const add = (length: number) => {
    lineBytes += length;
    totalBytes += length;
    if (lineBytes > MAX_LINE)
      throw failure("INPUT_TOO_LARGE", { reason: `an argument of more than ${MAX_LINE} bytes is not taken` });
    if (totalBytes > MAX_LINES)
      throw failure("INPUT_TOO_LARGE", { reason: `arguments of more than ${MAX_LINES} bytes are not taken` });
  };
  for await (const piece of source) {
    let from = 0;
    for (let end = piece.indexOf(LINE_FEED); end >= 0; end = piece.indexOf(LINE_FEED, from)) {
      add(end - from);
      const line = Buffer.concat([...rest, piece.subarray(from, end)]);
      rest = [];
      lineBytes = 0;
      totalBytes += LINE_COST;
      from = end + 1;
      yield fromBytes(line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line);
    }
    if (from === piece.length) continue;
    add(piece.length - from);
    rest.push(piece.subarray(from));
  }
  if (rest.length > 0) yield fromBytes(Buffer.concat(rest));
}

/** Returns the name of the first required argument without a value. */
function missingArgument(declared: readonly Argument[], count: number): string | undefined {
  return declared.filter(({ required }) => required === true)[count]?.name;
}

/**
 * Assigns values to arguments in order. An optional argument gets one only if enough remain for the
 * required ones.
 */
function assign(declared: readonly Argument[], values: readonly Value[], uris: boolean): Record<string, unknown> {
  const assigned: Record<string, unknown> = {};
  let wanted = declared.filter(({ required }) => required === true).length;
  let at = 0;
  for (const { name, required, variadic, bytes, path, mfs, default: preset } of declared) {
    const whole = uris && path === true ? (mfs === undefined ? kuboPath : pathOfUri) : String;
    const text = (value: Value) => whole(textOf(value));
    const as = (value: Value) => (bytes === true ? bytesOf(value) : text(value));
    if (required === true) wanted -= 1;
    if (variadic === true) assigned[name] = values.slice(at).map(as);
    else if (values.length - at > (required === true ? 0 : wanted)) assigned[name] = as(values[at++] as Value);
    else if (preset !== undefined) assigned[name] = preset;
  }
  return assigned;
}

/** Returns the arguments and options for `diag/cmds`, with secrets masked. */
export function loggable({ entry, options, given }: Parsed): {
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
} {
  const hide = "***";
  const declared = isCommand(entry) ? entry.arguments : [];
  const secrets = secretOptions(entry);
  const hidden = Object.keys(options).filter((name) => secrets.has(name));
  return {
    args: declared.some(({ secret }) => secret === true)
      ? given.map((value, at) => ((declared[at] ?? declared.at(-1))?.secret === true ? hide : value))
      : given,
    options:
      hidden.length === 0
        ? options
        : { ...options, ...Object.fromEntries(hidden.map((name) => [name, hide] as const)) },
  };
}

const secretsOf = new WeakMap<Command | Group, ReadonlySet<string>>();

/** Returns the names of the options marked as secret. */
function secretOptions(entry: Command | Group): ReadonlySet<string> {
  let names = secretsOf.get(entry);
  if (names === undefined) {
    const own: Options = isCommand(entry) ? { ...entry.group?.options, ...entry.options } : {};
    const all: Options = { ...globalOptions, ...own };
    names = new Set(Object.keys(all).filter((name) => all[name]?.secret === true));
    secretsOf.set(entry, names);
  }
  return names;
}
