/**
 * How a command is declared. Everything else is derived from the declaration: argument parsing and
 * its errors, the response on the wire, the `commands` listing, the reference pages, the OpenAPI
 * document and the command line.
 *
 *     export const commands = {
 *       "block/stat": readCommand({
 *         help: "Shows the size of a block.",
 *         readOnly: true,
 *         arguments: [{ name: "key", required: true, stdin: "first", help: "CID or path" }],
 *         returns: value(fields("BlockStat", { Key: "string", Size: "int" })),
 *         async run(call) {
 *           const { cid, size } = await call.node.block.stat(call.arguments.key, call);
 *           return { Key: cid.toString(), Size: size };
 *         },
 *         text: ({ Key, Size }) => `Key: ${Key}\nSize: ${Size}\n`,
 *       }),
 *     } satisfies Commands;
 *
 * `returns` determines the types: `run` returns values of that shape, and `text` receives them.
 */

import { type CidForm, type ConfigPath, goJson, type Node, type WaitingKey } from "modhost/node";
import type { CID } from "multiformats/cid";
import type { CommandLog } from "./command_log.ts";
import type { Level, LevelTraits, SinceLevel } from "./levels.ts";
import type { Operator } from "./operator.ts";
import type { Shape, ValueOf } from "./shape.ts";
import type { FileTree } from "./uploads.ts";

export interface Argument {
  /** The name shown in `argument "<name>" is required`. */
  readonly name: string;
  readonly help: string;
  readonly required?: boolean;
  /** Takes all remaining values. Only the last argument may be variadic. */
  readonly variadic?: boolean;
  /** Used when an optional argument is not given. */
  readonly default?: string;
  /**
   * Values may come from a multipart body: `lines` adds one value per line, `first` reads a single
   * line if no value was given. Only the last argument may set this.
   */
  readonly stdin?: "lines" | "first";
  /** Passed to `run` as bytes, since percent-encoded values and bodies need not be valid UTF-8. */
  readonly bytes?: boolean;
  /**
   * Values are content paths, which may be URIs if the level accepts these. `run` receives paths.
   */
  readonly path?: boolean;
  /** Values are masked in `diag/cmds` and in every log. */
  readonly secret?: boolean;
  /**
   * Values are paths of the mutable namespace. A command with such arguments touches nothing else.
   */
  readonly mfs?: MfsUse;
}

/** `int` and `uint` are 32 bits wide. `list` is a string flag that may be repeated. */
export type OptionType = "bool" | "int" | "int64" | "uint" | "uint64" | "float64" | "string" | "list";

export interface Option extends SinceLevel {
  readonly type: OptionType;
  readonly help: string;
  /** Alternative names, listed by `commands`. */
  readonly aliases?: readonly string[];
  /** Alternative names that are accepted but not listed. */
  readonly hiddenAliases?: readonly string[];
  readonly default?: boolean | number | string | readonly string[];
  /** Values that clients send for an option that is not set. The default then applies. */
  readonly unset?: readonly (number | string)[];
  readonly experimental?: boolean;
  readonly deprecated?: boolean;
  /** The option is accepted but not listed. */
  readonly hidden?: boolean;
  /** Values are masked in `diag/cmds` and in every log. */
  readonly secret?: boolean;
  /** The value is a path of the MFS, and the command uses it in this way. */
  readonly mfs?: MfsUse;
}

export type Options = Readonly<Record<string, Option>>;

/** Files expected in the request body. */
export interface FileArgument {
  readonly name: string;
  readonly help: string;
  readonly required?: boolean;
  /** A tree of files instead of a single one. */
  readonly many?: boolean;
}

/** The return type of `run` for each form. V is a value of the declared shape. */
interface ResultForms<V> {
  /**
   * Some options turn one value into a stream. A `Listing` is a value too long to hold in memory.
   */
  readonly value: V | AsyncIterable<V> | Listing<unknown, V>;
  readonly stream: AsyncIterable<V>;
  readonly bytes: Bytes;
  readonly nothing: void;
}

export type Form = keyof ResultForms<unknown>;

/** The form and shape of a command's result. */
export interface Returns<F extends Form = Form, S extends Shape = Shape> {
  readonly form: F;
  readonly shape: S;
}

/** Declares that a command returns one value. */
export const value = <const S extends Shape>(shape: S): Returns<"value", S> => ({ form: "value", shape });
/** Declares that a command returns a stream of values: `run` returns an async iterable. */
export const stream = <const S extends Shape>(shape: S): Returns<"stream", S> => ({ form: "stream", shape });
/** Declares that a command returns raw bytes: `run` returns `bytes(...)`. */
export const raw: Returns<"bytes", "any"> = { form: "bytes", shape: "any" };
/** Declares that a command returns nothing: `run` returns undefined. */
export const nothing: Returns<"nothing", "any"> = { form: "nothing", shape: "any" };

/** A raw response body. An error while it is being read is reported in the trailer. */
export class Bytes {
  readonly source: AsyncIterable<Uint8Array>;
  readonly options: BytesOptions;

  constructor(source: AsyncIterable<Uint8Array>, options: BytesOptions) {
    this.source = source;
    this.options = options;
  }
}

export interface BytesOptions {
  /** Sent as X-Content-Length: a hint for clients, not a guarantee. */
  readonly length?: number;
  /** Called with each chunk once it has been sent, so that its memory can be reused. */
  readonly release?: (piece: Uint8Array) => void;
}

/** A raw response body, from chunks or from a single array. */
export function bytes(source: AsyncIterable<Uint8Array> | Uint8Array, options: BytesOptions = {}): Bytes {
  return new Bytes(source instanceof Uint8Array ? alone(source) : source, options);
}

async function* alone(content: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  if (content.length > 0) yield content;
}

/**
 * A value V whose only field is a list that may not fit in memory. A long list is written page by
 * page, of items (T).
 */
export class Listing<T, V = unknown> {
  /** Name of the field that holds the list. The field is null when the list is empty. */
  readonly field: string;
  readonly pages: AsyncIterable<readonly T[]>;
  /**
   * Lists with the same name have the same contents, so a response may be cached under it.
   * Undefined if equality cannot be decided.
   */
  readonly name: string | undefined;

  constructor(field: string, pages: AsyncIterable<readonly T[]>, name?: string) {
    this.field = field;
    this.pages = pages;
    this.name = name;
  }

  /** Returns the complete value, for short lists and for encodings that need all of it at once. */
  whole(items: readonly T[]): V {
    return { [this.field]: items.length === 0 ? null : items } as V;
  }

  /** Yields the value as fragments of JSON, produced while the pages arrive. */
  async *json(pages: AsyncIterable<readonly T[]>): AsyncGenerator<string, void, undefined> {
    const before = `{${goJson(this.field)}:[`;
    let between = before;
    for await (const page of pages) {
      let text = "";
      for (const item of page) {
        text += between + this.itemJson(item);
        between = ",";
      }
      yield text;
    }
    yield between === "," ? "]}" : `${before}]}`;
  }

  /** Returns an item as JSON. */
  protected itemJson(item: T): string {
    return goJson(item);
  }
}

type OptionValue<T extends OptionType> = T extends "bool"
  ? boolean
  : T extends "string"
    ? string
    : T extends "list"
      ? readonly string[]
      : number;

/** Typed values by long name; undefined if the option was not given and has no default. */
export type OptionValues<O extends Options> = {
  readonly [K in keyof O]: OptionValue<O[K]["type"]> | (O[K] extends { default: unknown } ? never : undefined);
};

type ArgumentValue<D extends Argument> = D extends { bytes: true } ? Uint8Array : string;

/**
 * Typed values by name: a list for a variadic argument, undefined for an optional one that was not
 * given.
 */
export type ArgumentValues<A extends readonly Argument[]> = {
  readonly [D in A[number] as D["name"]]: D extends { variadic: true }
    ? readonly ArgumentValue<D>[]
    : ArgumentValue<D> | (D extends { required: true } | { default: string } ? never : undefined);
};

/** A group of commands. Its options apply to every command in it. */
export interface Group<O extends Options = Options> extends SinceLevel {
  readonly help: string;
  readonly options: O;
  /** Further text for the reference page. */
  readonly about?: string;
  readonly deprecated?: boolean;
  readonly experimental?: boolean;
}

/** The argument of `run`: the parsed call and the node. It contains nothing of HTTP. */
export interface Call<A, O> {
  readonly arguments: A;
  readonly options: O;
  /** All argument values as they were given, including any beyond the declared ones. */
  readonly given: readonly string[];
  /** Empty unless the body is multipart. */
  readonly files: FileTree;
  /**
   * Aborted when the client disconnects, when `timeout` expires, or when the server stops during an
   * endless command. In the last two cases its reason is the error for the client.
   */
  readonly signal: AbortSignal;
  /** Whether this call must not use the network. */
  readonly offline: boolean;
  readonly node: Node;
  readonly table: CommandTree;
  /** Values that depend on the level at which the call is served. */
  readonly level: LevelTraits;
  /** Running and finished commands, for `diag/cmds`. */
  readonly log: CommandLog;
  /** Control over the process that runs the node. @throws NodeError if the API has none */
  readonly operator: Operator;
  /** The CID format that the caller requested. */
  readonly cidForm: CidForm;
  /**
   * Returns a function that writes CIDs in the base given by `cid-base`. With `upgraded`, a CIDv0
   * is written as CIDv1 whenever a base is given, as the high-level commands do.
   *
   * @throws NodeError for an unknown base /
   */
  cidText(level?: "upgraded" | "kept"): (cid: CID) => string;
  /** Returns the text of a failure as clients of this level expect it. */
  wording(thrown: unknown): string;
  /**
   * Sets X-Content-Length like the `length` of `bytes`, but keeps it on the response even if `run`
   * fails afterwards.
   */
  announce(length: number): void;
  /**
   * Sets X-Modhost-Config-Waits to the keys that are configured but not in force; also applies to
   * the response of a failed `run`.
   */
  reportPendingKeys(keys: readonly WaitingKey[]): void;
}

export type AnyCall = Call<Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>>;

/** An encoding that only one command offers. */
export interface Encoding<V> {
  readonly type: string;
  readonly encode: (value: V) => string | Uint8Array;
}

/**
 * Whether a command reads or changes the node, as declared by `readCommand` or `writeCommand`. A
 * token may be limited to either.
 */
export type Effect = "read" | "write";

/**
 * How a command uses a path of the mutable namespace (MFS), for tokens that are limited to a
 * directory. `look` and `make` may name the directory itself. `change` must lie below it. `into`
 * must lie below it or be the directory with a trailing slash. `copy` is read, and may be a path
 * such as `/ipfs/<cid>`.
 */
export type MfsUse = "look" | "make" | "change" | "into" | "copy";

interface Traits extends SinceLevel {
  /** Describes the command in one sentence. */
  readonly help: string;
  /** Further text for the reference page. */
  readonly about?: string;
  readonly file?: FileArgument;
  readonly returns: Returns;
  /** Also served on the read-only gateway port. */
  readonly readOnly?: boolean;
  readonly experimental?: boolean;
  readonly deprecated?: boolean;
  /** A stream whose headers are sent before its first value. */
  readonly eager?: boolean;
  /** Whether the command runs until the caller disconnects or the server stops. */
  readonly endless?: boolean;
  /** The config switch that must be on for the command to work. */
  readonly needs?: `Experimental.${string}` & ConfigPath;
  /**
   * Query parameters that a working example needs in addition to the required arguments; `arg` sets
   * one of those.
   */
  readonly example?: Readonly<Record<string, string>>;
}

/** Returns what the command does, and the config switch that it needs. */
export const summaryOf = ({ help, needs }: Traits): string =>
  needs === undefined ? help : `${help} Needs ${needs} of the node's configuration.`;

type CallOf<A extends readonly Argument[], O extends Options> = Call<ArgumentValues<A>, OptionValues<O>>;

/** F, S: form and shape of the result; A, O: arguments and options; G: options of the group. */
export interface Declaration<
  F extends Form,
  S extends Shape,
  A extends readonly Argument[],
  O extends Options,
  G extends Options,
> extends Traits {
  readonly returns: Returns<F, S>;
  /** The command's group, if that has options. */
  readonly group?: Group<G>;
  readonly arguments?: A;
  readonly options?: O;
  readonly run: (call: CallOf<A, O & G>) => ResultForms<ValueOf<S>>[F] | Promise<ResultForms<ValueOf<S>>[F]>;
  /** Returns the text form of a value; `previous` is the value before it in a stream. */
  readonly text?: (value: ValueOf<S>, call: CallOf<A, O & G>, previous: ValueOf<S> | undefined) => string | Uint8Array;
  /** Encodings in addition to json, text and xml, by name. */
  readonly encodings?: Readonly<Record<string, Encoding<ValueOf<S>>>>;
}

/** A declared command with its type parameters erased. */
export interface Command extends Traits {
  readonly effect: Effect;
  readonly group: Group | undefined;
  readonly arguments: readonly Argument[];
  readonly options: Options;
  readonly encodings: Readonly<Record<string, Encoding<unknown>>>;
  run(call: AnyCall): unknown;
  text?(value: unknown, call: AnyCall, previous: unknown): string | Uint8Array;
}

/** Commands and groups by path: `"files"`, `"files/ls"`. */
export type Commands = Readonly<Record<string, Command | Group>>;

/** One node of the command tree: a command, a group, or both. */
export interface CommandNode {
  /** Last component of the path; "" at the root. */
  readonly name: string;
  readonly path: string;
  readonly entry: Command | Group;
  readonly children: ReadonlyMap<string, CommandNode>;
  /** Options of this entry and of all its ancestors, by every name and alias. */
  readonly options: ReadonlyMap<string, NamedOption>;
}

export interface NamedOption {
  readonly name: string;
  readonly option: Option;
}

/** The commands of an API, as a command sees them. */
export interface CommandTree {
  readonly root: CommandNode;
  /** The level of the API. Commands that came later are served but not listed. */
  readonly level: Level;
}

const declaring =
  (effect: Effect) =>
  <
    F extends Form,
    S extends Shape,
    const A extends readonly Argument[] = readonly [],
    const O extends Options = Record<never, never>,
    const G extends Options = Record<never, never>,
  >(
    declaration: Declaration<F, S, A, O, G>,
  ): Command => {
    const { group, arguments: args = [], options = {}, encodings = {}, ...rest } = declaration;
    return { ...rest, effect, group, arguments: args, options, encodings } as unknown as Command;
  };

/** Declares a command that only reads. It may fetch content, which the node then stores. */
export const readCommand = declaring("read");

/**
 * Declares a command that changes the data, the settings or the services of the node, stops it,
 * runs a program, or returns a private key.
 */
export const writeCommand = declaring("write");

export function defineGroup<const O extends Options = Record<never, never>>(
  group: Omit<Group<O>, "options"> & { readonly options?: O },
): Group<O> {
  return { ...group, options: group.options ?? ({} as O) };
}

export const isCommand = (entry: Command | Group): entry is Command => "run" in entry;
