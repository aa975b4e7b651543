/** Parses the words of the command line into a call. */
import { firstWord, nearest, type Options, UsageError } from "../../../../core/cli/index.ts";
import type { RpcCommand, RpcOption } from "./surface.ts";

/** Options with a value that may precede a command. */
export const callOptions = {
  api: { type: "string", value: "ADDRESS", help: "The server: a URL or a multiaddress" },
  token: { type: "string", value: "TOKEN", help: "A token of its option api_tokens; @FILE reads it from a file" },
  "api-auth": {
    type: "string",
    value: "SECRET",
    help: "A secret of API.Authorizations: bearer:TOKEN or basic:USER:PASSWORD; @FILE reads it from a file",
  },
  encoding: { type: "string", value: "FORM", help: "Format of the result: text, json (one value per line) or xml" },
  enc: { type: "string", value: "FORM", help: "The same" },
  timeout: { type: "string", value: "TIME", help: "Time limit, such as 30s" },
  "cid-base": { type: "string", value: "BASE", help: "Base of CIDs of version 1" },
} as const satisfies Options;

/** Moves options that precede the command behind it. */
export function moveCommandFirst(words: readonly string[]): readonly string[] {
  if (words.length === 1 && words[0] === "--version") return ["version"];
  const at = firstWord(words, callOptions) ?? words.length;
  const behind = words.slice(at);
  const end = behind.indexOf("--");
  return behind.toSpliced(end < 0 ? behind.length : end, 0, ...words.slice(0, at));
}

/** Options that the command line itself handles, for every command. */
export interface OwnOptions {
  readonly api: string | undefined;
  readonly token: string | undefined;
  readonly apiAuth: string | undefined;
  readonly help: boolean;
}

/**
 * Removes `--api`, `--api-auth`, `--token` and `--help` from the words. Words after `--` are left
 * alone.
 *
 * @throws UsageError /
 */
export function takeOwnOptions(words: readonly string[]): OwnOptions & { readonly rest: readonly string[] } {
  const own: Record<string, string> = {};
  const rest: string[] = [];
  let help = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word === "--") {
      rest.push(...words.slice(at));
      break;
    }
    const [, name, given] = /^--(api|api-auth|token)(?:=(.*))?$/s.exec(word) ?? [];
    if (word === "--help" || word === "-h") help = true;
    else if (name === undefined) rest.push(word);
    else own[name] = given ?? valueAfter(words, ++at, word);
  }
  return { api: own.api, token: own.token, apiAuth: own["api-auth"], help, rest };
}

function valueAfter(words: readonly string[], at: number, option: string): string {
  const value = words[at];
  if (value === undefined) throw new UsageError(`${option} needs a value`);
  return value;
}

/** Returns the command with the longest path that the words begin with, and the words after it. */
export function findCommand(
  commands: ReadonlyMap<string, RpcCommand>,
  words: readonly string[],
): { readonly command: RpcCommand | undefined; readonly group: string; readonly rest: readonly string[] } {
  const isGroup = (path: string) => [...commands.keys()].some((each) => each.startsWith(`${path}/`));
  let command: RpcCommand | undefined;
  let group = "";
  let used = 0;
  for (let count = 1; count <= words.length; count++) {
    const path = words.slice(0, count).join("/");
    const known = commands.get(path);
    if (known !== undefined) {
      command = known;
      used = count;
    }
    if (isGroup(path)) group = path;
    else break;
  }
  return { command, group, rest: words.slice(used) };
}

export interface Call {
  readonly command: RpcCommand;
  readonly arguments: readonly string[];
  /**
   * By long name. A list has all its values. A flag is `true`, `false`, or a text that the server
   * will refuse.
   */
  readonly options: ReadonlyMap<string, readonly string[]>;
  readonly files: readonly string[];
}

/** Words for flags that the server accepts, in any letter case. */
const flags = new Map([
  ...["", "1", "t", "true"].map((word) => [word, "true"] as const),
  ...["0", "f", "false"].map((word) => [word, "false"] as const),
]);

/** Returns whether a flag is given and true. */
export function isFlagSet({ options }: Call, name: string): boolean {
  return options.get(name)?.[0] === "true";
}

/** Parses the words after the command. @throws UsageError */
export function parseCall(command: RpcCommand, words: readonly string[]): Call {
  const given = new GivenOptions(command);
  const positionals: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word === "--") {
      positionals.push(...words.slice(at + 1));
      break;
    }
    const [, long, value] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (long !== undefined) {
      const option = given.find(long);
      given.add(option, value ?? (option.kind === "flag" ? "true" : valueAfter(words, ++at, word)));
    } else if (/^-[^-]/.test(word)) at = given.addLetters(word.slice(1), words, at);
    else positionals.push(word);
  }
  return { command, options: given.options, ...divide(command, positionals) };
}

/**
 * Flags of `modhost` itself, which precede `rpc`. The hint for a misplaced one names the option of
 * the call that replaces it.
 */
const ownForms = new Map([
  ["json", "encoding=json"],
  ["no-json", "encoding=text"],
]);

/** The options of a call, collected from its words. */
class GivenOptions {
  readonly options = new Map<string, string[]>();
  readonly #known: ReadonlyMap<string, RpcOption>;
  readonly #title: string;

  constructor({ path, options }: RpcCommand) {
    this.#known = new Map(options.flatMap((option) => [option.name, ...option.aliases].map((name) => [name, option])));
    this.#title = path.replaceAll("/", " ");
  }

  /** Finds an option of the command by its name. @throws UsageError */
  find(name: string): RpcOption {
    const option = this.#known.get(name);
    if (option !== undefined) return option;
    const dashes = (each: string) => `${each.length === 1 ? "-" : "--"}${each}`;
    const like = name.length === 1 ? undefined : nearest(name, [...this.#known.keys()]);
    const near = ownForms.get(name) ?? like;
    const hint = near === undefined ? "" : `: did you mean ${dashes(near)}?`;
    throw new UsageError(`${this.#title} has no option ${dashes(name)}${hint}`);
  }

  /** @throws UsageError for a second value of an option that takes one */
  add({ name, kind }: RpcOption, value: string): void {
    const values = this.options.get(name);
    const meant = (kind === "flag" && flags.get(value.toLowerCase())) || value;
    if (values === undefined) this.options.set(name, [meant]);
    else if (kind === "list") values.push(meant);
    else throw new UsageError(`${this.#title} takes --${name} once`);
  }

  /** Parses `-rw`, `-n5`, `-n=5` and `-n 5`. Returns the index of the last word used. */
  addLetters(text: string, words: readonly string[], at: number): number {
    const whole = text.includes("=") ? undefined : this.#known.get(text);
    if (whole !== undefined && text.length > 1) {
      this.add(whole, whole.kind === "flag" ? "true" : valueAfter(words, at + 1, `-${text}`));
      return whole.kind === "flag" ? at : at + 1;
    }
    for (let index = 0; index < text.length; index++) {
      const letter = text.charAt(index);
      const option = this.find(letter);
      const rest = text.slice(index + 1);
      if (rest.startsWith("=")) {
        this.add(option, rest.slice(1));
        return at;
      }
      if (option.kind === "flag") this.add(option, "true");
      else if (rest !== "") {
        this.add(option, rest);
        return at;
      } else {
        this.add(option, valueAfter(words, at + 1, `-${letter}`));
        return at + 1;
      }
    }
    return at;
  }
}

/** Splits the words: arguments first, then the paths of files. */
function divide({ path, arguments: declared, file }: RpcCommand, words: readonly string[]) {
  const title = path.replaceAll("/", " ");
  if (file !== undefined) {
    const wanted = declared.length;
    const files = words.slice(wanted);
    if (files.length > 1 && file.many !== true) throw new UsageError(`${title} takes one file, not ${files.join(" ")}`);
    return { arguments: words.slice(0, wanted), files };
  }
  const isVariadic = declared.at(-1)?.variadic === true;
  if (!isVariadic && words.length > declared.length) {
    const extra = words.slice(declared.length).join(" ");
    throw new UsageError(
      declared.length === 0
        ? `${title} takes no argument, but there is ${extra}`
        : `${title} takes no more arguments, but there is ${extra}`,
    );
  }
  return { arguments: words, files: [] };
}

/** Returns the request target of a call. */
export function targetOf({ command, arguments: values, options }: Call): string {
  const query = new URLSearchParams(values.map((value): [string, string] => ["arg", value]));
  for (const [name, given] of options) for (const value of given) query.append(name, value);
  return `/api/v0/${command.path}?${query}`;
}
