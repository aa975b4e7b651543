/** Parses the words of a command line by the declaration of a command. */
import { parseArgs } from "node:util";
import { nearest } from "../config/index.ts";
import { reasonOf } from "../util/errors.ts";
import { type Command, type CommandOption, UsageError } from "./command.ts";

export type Options = Readonly<Record<string, CommandOption>>;

export interface Words {
  readonly args: string[];
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
}

/**
 * Returns the index of the first word that is neither an option nor the value of one of these;
 * undefined if there is none.
 */
export function firstWord(words: readonly string[], options: Options): number | undefined {
  return tokensOf(words, options).find(({ kind }) => kind === "positional")?.index;
}

/** One or two words that form one option. */
export interface OptionWords {
  readonly name: string;
  readonly value: string | undefined;
  readonly index: number;
  readonly count: number;
}

/** Finds these options among words that may include unknown options. */
export function findOptions(words: readonly string[], options: Options): OptionWords[] {
  return tokensOf(words, options).flatMap((token) => {
    if (token.kind !== "option" || options[token.name] === undefined) return [];
    const { name, rawName, index, inlineValue } = token;
    // The letters of an unknown option may look like one of these: `-f=%c`.
    const word = words[index] ?? "";
    if (!(token.value === undefined ? word === rawName || word.startsWith("--") : word.startsWith(rawName))) return [];
    const value = rawName.length === 2 && inlineValue === true ? token.value?.replace(/^=/, "") : token.value;
    return [{ name, value, index, count: value === undefined || inlineValue === true ? 1 : 2 }];
  });
}

/** Returns the values of these options (true for a flag), and the remaining words. */
export function takeOptions(words: readonly string[], options: Options) {
  const found = findOptions(words, options);
  const values: Record<string, string | boolean> = {};
  const taken = new Set<number>();
  for (const { name, value, index, count } of found) {
    values[name] = value ?? true;
    for (let at = index; at < index + count; at++) taken.add(at);
  }
  return { values, rest: words.filter((_, at) => !taken.has(at)) };
}

function tokensOf(words: readonly string[], options: Options) {
  const args = [...words];
  const { tokens } = parseArgs({
    args,
    options,
    strict: false,
    allowPositionals: true,
    allowNegative: true,
    tokens: true,
  });
  return tokens;
}

/**
 * Parses arguments and options of a command; `hint` returns a suggestion for an unknown option.
 * @throws UsageError for words that the command does not take
 */
export function readWords(
  { name, arguments: taken, options }: Pick<Command, "name" | "arguments" | "options">,
  words: readonly string[],
  shared: Options,
  hint: (unknown: string) => string = () => "",
): Words {
  const known = { ...options, ...shared };
  const { values, positionals } = strictly(name, known, hint, () =>
    parseArgs({
      args: joined(plain(words, known), known),
      options: known,
      allowPositionals: true,
      allowNegative: true,
    }),
  );
  if (taken === undefined && positionals.length > 0) {
    throw new UsageError(`${name} takes no argument, but there is ${positionals.join(" ")}`);
  }
  return { args: positionals, values: values as Words["values"] };
}

/**
 * Converts the style of Go programs, where flags may have values and letters an equals sign:
 * `--migrate=false`, `-p=server`.
 */
function plain(words: readonly string[], options: Options): string[] {
  const end = words.indexOf("--");
  return words.map((word, at) => {
    if (end >= 0 && at > end) return word;
    const [, long, flag] = /^--([^=]+)=(true|false)$/.exec(word) ?? [];
    if (long !== undefined && options[long]?.type === "boolean") return flag === "true" ? `--${long}` : `--no-${long}`;
    const [, letter, value] = /^-(\w)=(.+)$/s.exec(word) ?? [];
    return letter === undefined ? word : `-${letter}${value}`;
  });
}

/** Joins values that are given as two words. */
function joined(words: readonly string[], options: Options): string[] {
  const pairs = Object.entries(options).flatMap(([name, { firstOfTwo }]) => {
    return firstOfTwo === undefined
      ? []
      : findOptions(words, { [name]: options[name]! }).map((found) => ({ ...found, firstOfTwo }));
  });
  return pairs.reduceRight(
    (rest, { value, index, count, name, firstOfTwo }) => {
      const second = rest[index + count];
      const isPair = value !== undefined && second !== undefined && firstOfTwo.test(value) && !second.startsWith("-");
      return isPair ? rest.toSpliced(index, count + 1, `--${name}=${value} ${second}`) : rest;
    },
    [...words],
  );
}

function strictly<T>(name: string, known: Options, hint: (unknown: string) => string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const [, unknown] = /^Unknown option '--([^']+)'/.exec(reasonOf(error)) ?? [];
    if (unknown === undefined) throw new UsageError(reasonOf(error).split("\n")[0]);
    const near = hint(unknown) || suggestion(unknown, Object.keys(known), "--");
    throw new UsageError(`${name} has no option --${unknown}${near}`);
  }
}

/** Returns `: did you mean …?`, or "". */
export function suggestion(name: string, known: readonly string[], prefix = ""): string {
  const near = nearest(name, known);
  return near === undefined ? "" : `: did you mean ${prefix}${near}?`;
}
