/** The text of a config file in YAML or JSON: read, and places in it. */
import { basename, extname } from "node:path";
import { isCollection, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from "yaml";
import { reasonOf } from "../util/errors.ts";
import { isObject } from "./convert.ts";

export type TextFormat = "yaml" | "json" | "script";

/** A place in a text: line and column from 1. */
export interface TextPlace {
  readonly line: number;
  readonly column: number;
}

/** What is wrong in a text, and where; never with a piece of it, which may be a secret. */
export class TextError extends SyntaxError implements TextPlace {
  readonly line: number;
  readonly column: number;
  readonly what: string;

  constructor(line: number, column: number, what: string) {
    super(`line ${line}, column ${column}: ${what}`);
    this.line = line;
    this.column = column;
    this.what = what;
  }
}

export function formatOf(file: string): TextFormat {
  const extension = extname(basename(file).replace(/^\./, ""));
  if (extension === ".json") return "json";
  return [".ts", ".js", ".mjs", ".cjs"].includes(extension) ? "script" : "yaml";
}

/** What a file would give if this were its text; not for scripts. @throws {TextError} */
export function readText(file: string, text: string): unknown {
  return formatOf(file) === "json" ? readJson(file, text) : readYaml(file, text);
}

/** Where an option stands in a text, by its path: `http_ports`, `hosts.www.example.org.http_files_dir`. */
export function placeIn(text: string, path: string): TextPlace | undefined {
  const lines = new LineCounter();
  // JSON is YAML, too.
  let { contents: node } = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  let at: number | undefined;
  for (let rest = path; rest !== "" && isCollection(node); ) {
    // The longest name first: names of hosts have points in them.
    const found = entriesOf(node)
      .filter(([name]) => rest === name || rest.startsWith(`${name}.`) || rest.startsWith(`${name}[`))
      .toSorted(([one], [other]) => other.length - one.length)[0];
    if (found === undefined) break;
    const [name, key, value] = found;
    at = key ?? at;
    node = value as typeof node;
    rest = rest.slice(name.length).replace(/^[.[]/, "").replace("]", "");
  }
  if (at === undefined) return undefined;
  const { line, col } = lines.linePos(at);
  return { line, column: col };
}

/** Name, place and value of each entry. */
function entriesOf(node: unknown): [string, number | undefined, unknown][] {
  if (isMap(node)) {
    return node.items.flatMap(({ key, value }) =>
      isScalar(key) ? [[String(key.value), key.range?.[0], value] as [string, number | undefined, unknown]] : [],
    );
  }
  if (!isSeq(node)) return [];
  return node.items.map((item, at) => [String(at), isScalar(item) ? item.range?.[0] : undefined, item]);
}

/** @throws {TextError} */
export function readYaml(_path: string, content: string): unknown {
  const lines = new LineCounter();
  const document = parseDocument(content, { lineCounter: lines, prettyErrors: false });
  const wrong = (at: number, what: string) => {
    const { line, col } = lines.linePos(at);
    return new TextError(line, col, what);
  };
  const [error] = document.errors;
  if (error !== undefined) throw wrong(error.pos[0], error.message);
  visit(document, {
    Alias(_key, alias) {
      // The parser would tell the text, which may be a token.
      if (alias.resolve(document) !== undefined) return;
      throw wrong(alias.range?.[0] ?? 0, "a value that begins with * refers to an anchor, which is missing: quote it");
    },
  });
  return document.toJS();
}

/** @throws {TextError} */
export function readJson(path: string, content: string): unknown {
  const text = content.replace(/^\uFEFF/, "");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const message = reasonOf(error);
    const position = Number(/position (\d+)/.exec(message)?.[1] ?? quotedPosition(message, text) ?? text.length);
    const before = text.slice(0, position).split("\n");
    // A quoted piece of the file may have a secret in it.
    const [what = message] = message.split(/ in JSON at | at position | \(line |, (?:\.\.\.)?"/);
    throw new TextError(before.length, (before.at(-1)?.length ?? 0) + 1, what);
  }
  // A package that is a module carries its manifest under the same key; that is no configuration.
  const isManifest =
    basename(path) === "package.json" && isObject(value) && isObject(value.modhost) && "kind" in value.modhost;
  return isManifest ? {} : value;
}

/** Characters before and behind the wrong one that V8 quotes. */
const QUOTED_CHARACTERS = 10;

/** Where the wrong character is, when the message quotes what is around it: `Unexpected token 'b', ..."1,\n  b\n}" is not …`. */
function quotedPosition(message: string, text: string): number | undefined {
  const quoted = /, \.\.\."(.*)"(?:\.\.\.)? is not valid JSON$/s.exec(message)?.[1];
  const at = quoted === undefined ? -1 : text.indexOf(quoted);
  return at < 0 ? undefined : at + QUOTED_CHARACTERS;
}
