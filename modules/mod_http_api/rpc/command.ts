/**
 * How a command is declared. Everything else follows from the declaration: parsing and its refusals, the answer on the
 * wire, `commands`, the reference pages, OpenAPI, the command line.
 *
 *     export const commands = {
 *       "block/stat": defineCommand({
 *         help: "Tells the size of a block.",
 *         readOnly: true,
 *         arguments: [{ name: "key", required: true, stdin: "first", help: "The block, by CID or path." }],
 *         returns: value(fields("BlockStat", { Key: "string", Size: "int" })),
 *         async run(call) {
 *           const { cid, size } = await call.node.block.stat(call.arguments.key, call);
 *           return { Key: cid.toString(), Size: size };
 *         },
 *         text: ({ Key, Size }) => `Key: ${Key}\nSize: ${Size}\n`,
 *       }),
 *     } satisfies Commands;
 *
 * `returns` says the types: `run` gives values of that shape, and `text` takes them.
 */

import { type CidForm, type ConfigPath, goJson, type Node } from "modhost/node";
import type { CID } from "multiformats/cid";
import type { CommandLog } from "./command_log.ts";
import type { Operator } from "./operator.ts";
import type { Shape, ValueOf } from "./shape.ts";
import type { Table } from "./table.ts";
import type { FileTree } from "./uploads.ts";

export interface Argument {
  /** As it stands in `argument "<name>" is required`. */
  readonly name: string;
  readonly help: string;
  readonly required?: boolean;
  /** Takes all values that are left; the last argument only. */
  readonly variadic?: boolean;
  /** The value of an optional argument when none is given. */
  readonly default?: string;
  /** The last argument only. A multipart body gives it: each line one value more, or one line when it is missing. */
  readonly stdin?: "lines" | "first";
  /** Given as bytes: what is percent-encoded or in the body need not be text. */
  readonly bytes?: boolean;
  /** Its values are kept out of `diag/cmds` and of every log. */
  readonly secret?: boolean;
}

/** `int` and `uint` have 32 bits. A list is a string flag that may be repeated. */
export type OptionType = "bool" | "int" | "int64" | "uint" | "uint64" | "float64" | "string" | "list";

export interface Option {
  readonly type: OptionType;
  readonly help: string;
  /** Second names, as `commands` lists them. */
  readonly aliases?: readonly string[];
  /** Second names that are accepted and not shown. */
  readonly hiddenAliases?: readonly string[];
  readonly default?: boolean | number | string | readonly string[];
  readonly experimental?: boolean;
  readonly deprecated?: boolean;
  /** Accepted and not shown. */
  readonly hidden?: boolean;
  /** Its values are kept out of `diag/cmds` and of every log. */
  readonly secret?: boolean;
}

export type Options = Readonly<Record<string, Option>>;

/** Parts of the body. */
export interface FileArgument {
  readonly name: string;
  readonly help: string;
  readonly required?: boolean;
  /** A tree of files instead of one. */
  readonly many?: boolean;
}

/** What `run` returns by form; V: a value of the shape. */
interface Answers<V> {
  /** Or many by option, or a list that may be too long to be held. */
  readonly value: V | AsyncIterable<V> | Listing<unknown, V>;
  readonly stream: AsyncIterable<V>;
  readonly bytes: Bytes;
  readonly nothing: void;
}

export type Form = keyof Answers<unknown>;

/** What a command answers with. */
export interface Returns<F extends Form = Form, S extends Shape = Shape> {
  readonly form: F;
  readonly shape: S;
}

/** One value. */
export const value = <const S extends Shape>(shape: S): Returns<"value", S> => ({ form: "value", shape });
/** Values one after the other: `run` returns an async iterable. */
export const stream = <const S extends Shape>(shape: S): Returns<"stream", S> => ({ form: "stream", shape });
/** `run` returns `bytes(...)`. */
export const raw: Returns<"bytes", "any"> = { form: "bytes", shape: "any" };
/** `run` returns undefined. */
export const nothing: Returns<"nothing", "any"> = { form: "nothing", shape: "any" };

/** A raw answer. Whatever fails while it is read is told in the trailer. */
export class Bytes {
  readonly source: AsyncIterable<Uint8Array>;
  readonly options: BytesOptions;

  constructor(source: AsyncIterable<Uint8Array>, options: BytesOptions) {
    this.source = source;
    this.options = options;
  }
}

export interface BytesOptions {
  /** A hint for clients (X-Content-Length), not a promise. */
  readonly length?: number;
  /** Takes a piece back that has been sent: its memory may be used again. */
  readonly release?: (piece: Uint8Array) => void;
}

/** A raw answer, in pieces or in one. */
export function bytes(source: AsyncIterable<Uint8Array> | Uint8Array, options: BytesOptions = {}): Bytes {
  return new Bytes(source instanceof Uint8Array ? alone(source) : source, options);
}

async function* alone(content: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  if (content.length > 0) yield content;
}

/** One value V of one list that may be too long to be held: then its items T are written as they come. */
export class Listing<T, V = unknown> {
  /** Of the value: where the list stands. It is null when there is nothing in it. */
  readonly field: string;
  readonly items: AsyncIterable<T>;

  constructor(field: string, items: AsyncIterable<T>) {
    this.field = field;
    this.items = items;
  }

  /** The value, when it is short or its encoding needs all of it. */
  whole(items: readonly T[]): V {
    return { [this.field]: items.length === 0 ? null : items } as V;
  }

  /** The same as JSON, in bits, while the items come. */
  async *json(items: AsyncIterable<T>): AsyncGenerator<string, void, undefined> {
    const before = `{${goJson(this.field)}:[`;
    let between = before;
    for await (const item of items) {
      yield between + goJson(item);
      between = ",";
    }
    yield between === "," ? "]}" : `${before}]}`;
  }
}

type OptionValue<T extends OptionType> = T extends "bool"
  ? boolean
  : T extends "string"
    ? string
    : T extends "list"
      ? readonly string[]
      : number;

/** Typed values by long name; undefined where nothing was given and there is no default. */
export type OptionValues<O extends Options> = {
  readonly [K in keyof O]: OptionValue<O[K]["type"]> | (O[K] extends { default: unknown } ? never : undefined);
};

type ArgumentValue<D extends Argument> = D extends { bytes: true } ? Uint8Array : string;

/** Typed values by name: a list where it is variadic, undefined where it is optional and missing. */
export type ArgumentValues<A extends readonly Argument[]> = {
  readonly [D in A[number] as D["name"]]: D extends { variadic: true }
    ? readonly ArgumentValue<D>[]
    : ArgumentValue<D> | (D extends { required: true } | { default: string } ? never : undefined);
};

/** A group of commands; its options are those of every command in it. */
export interface Group<O extends Options = Options> {
  readonly help: string;
  readonly options: O;
  /** What the reference page says besides. */
  readonly about?: string;
  readonly deprecated?: boolean;
  readonly experimental?: boolean;
}

/** What `run` gets: the call as parsed, and the node. Nothing of HTTP. */
export interface Call<A, O> {
  readonly arguments: A;
  readonly options: O;
  /** How many values were given, beyond those declared, too. */
  readonly given: number;
  /** Empty when the body is no multipart. */
  readonly files: FileTree;
  /** Aborted when the client leaves, and with the text for the client when `timeout` has passed. */
  readonly signal: AbortSignal;
  /** This call uses no network. */
  readonly offline: boolean;
  readonly node: Node;
  readonly table: Table;
  /** What runs and ran, for `diag/cmds`. */
  readonly log: CommandLog;
  /** Whoever runs the node. @throws NodeError where nobody does */
  readonly operator: Operator;
  /** How the caller wants CIDs written. */
  readonly cidForm: CidForm;
  /**
   * Writes CIDs in the base that `cid-base` names. `upgraded`: version 0 is shown as version 1 when a base is named, as
   * commands of the upper level do. @throws NodeError for an unknown base
   */
  cidText(level?: "upgraded" | "kept"): (cid: CID) => string;
  /** As the length of `bytes`, but it stays on the answer when `run` fails afterwards. */
  announce(length: number): void;
}

export type AnyCall = Call<Readonly<Record<string, unknown>>, Readonly<Record<string, unknown>>>;

/** An encoding that only this command knows. */
export interface Encoding<V> {
  readonly type: string;
  readonly encode: (value: V) => string | Uint8Array;
}

interface Traits {
  /** One sentence. */
  readonly help: string;
  /** What the reference page says besides. */
  readonly about?: string;
  readonly file?: FileArgument;
  readonly returns: Returns;
  /** The read-only port of the gateway has it, too. */
  readonly readOnly?: boolean;
  readonly experimental?: boolean;
  readonly deprecated?: boolean;
  /** A stream whose headers go out before its first value. */
  readonly eager?: boolean;
  /** Switch of the configuration without which it fails. */
  readonly needs?: `Experimental.${string}` & ConfigPath;
  /** What must be given in the query for an example to succeed, beside required arguments; `arg` is one of those. */
  readonly example?: Readonly<Record<string, string>>;
}

/** What the command does, and what has to be switched on for it. */
export const summaryOf = ({ help, needs }: Traits): string =>
  needs === undefined ? help : `${help} Needs ${needs} of the node's configuration.`;

type CallOf<A extends readonly Argument[], O extends Options> = Call<ArgumentValues<A>, OptionValues<O>>;

/** F, S: form and shape of the answer; A, O: the arguments and options; G: the options of the group. */
export interface Declaration<
  F extends Form,
  S extends Shape,
  A extends readonly Argument[],
  O extends Options,
  G extends Options,
> extends Traits {
  readonly returns: Returns<F, S>;
  /** The group, when it has options. */
  readonly group?: Group<G>;
  readonly arguments?: A;
  readonly options?: O;
  readonly run: (call: CallOf<A, O & G>) => Answers<ValueOf<S>>[F] | Promise<Answers<ValueOf<S>>[F]>;
  /** The text form of a value; `previous` is the value before it in a stream. */
  readonly text?: (value: ValueOf<S>, call: CallOf<A, O & G>, previous: ValueOf<S> | undefined) => string | Uint8Array;
  /** Encodings beside json, text and xml, by name. */
  readonly encodings?: Readonly<Record<string, Encoding<ValueOf<S>>>>;
}

/** A declared command, its types forgotten. */
export interface Command extends Traits {
  readonly group: Group | undefined;
  readonly arguments: readonly Argument[];
  readonly options: Options;
  readonly encodings: Readonly<Record<string, Encoding<unknown>>>;
  run(call: AnyCall): unknown;
  text?(value: unknown, call: AnyCall, previous: unknown): string | Uint8Array;
}

/** Commands and groups by path: `"files"`, `"files/ls"`. */
export type Commands = Readonly<Record<string, Command | Group>>;

export function defineCommand<
  F extends Form,
  S extends Shape,
  const A extends readonly Argument[] = readonly [],
  const O extends Options = Record<never, never>,
  const G extends Options = Record<never, never>,
>(declaration: Declaration<F, S, A, O, G>): Command {
  const { group, arguments: args = [], options = {}, encodings = {}, ...rest } = declaration;
  return { ...rest, group, arguments: args, options, encodings } as unknown as Command;
}

export function defineGroup<const O extends Options = Record<never, never>>(
  group: Omit<Group<O>, "options"> & { readonly options?: O },
): Group<O> {
  return { ...group, options: group.options ?? ({} as O) };
}

export const isCommand = (entry: Command | Group): entry is Command => "run" in entry;
