/** Reads config files in YAML or JSON, and finds options in their text. */
import { isUtf8 } from "node:buffer";
import { readFile } from "node:fs/promises";
import { basename, extname } from "node:path";
import { reasonOf } from "../util/errors.ts";
import { isObject } from "./convert.ts";
import { repeatedName } from "./json_names.ts";
import { TextError, type TextPosition } from "./text_error.ts";

export type TextFormat = "yaml" | "json" | "script";

export function formatOf(file: string): TextFormat {
  const extension = extname(basename(file).replace(/^\./, ""));
  if (extension === ".json") return "json";
  return [".ts", ".js", ".mjs", ".cjs"].includes(extension) ? "script" : "yaml";
}

/** Parses a text as if it were the content of a file; not for scripts. @throws {TextError} */
export async function readText(file: string, text: string): Promise<unknown> {
  return formatOf(file) === "json" ? readJson(file, text) : readYaml(file, text);
}

/**
 * Reads a file as UTF-8, and removes a byte order mark. Other encodings are refused, because wrong
 * bytes would silently become U+FFFD and, for example, name another file.
 * @throws {TextError}
 */
export async function readUtf8(path: string): Promise<string> {
  const bytes = await readFile(path);
  const text = new TextDecoder().decode(bytes);
  // UTF-16 and UTF-32 without a byte order mark are valid UTF-8, too, with NUL after each letter.
  const nul = text.indexOf("\0");
  if (nul >= 0) throw errorAt(text, nul, "the file must be UTF-8 text: there is a NUL byte, as in UTF-16");
  if (!isUtf8(bytes)) {
    throw errorAt(
      text,
      text.indexOf("\uFFFD"),
      "the file must be UTF-8: here it is in another encoding, such as Latin-1",
    );
  }
  return text;
}

/**
 * Returns the position of an option in a text, by its path: `http_ports`,
 * `hosts.www.example.org.notes_folder`.
 */
export async function positionIn(text: string, path: string): Promise<TextPosition | undefined> {
  return (await parser()).positionIn(text, path);
}

/** @throws {TextError} */
export async function readYaml(_path: string, content: string): Promise<unknown> {
  return (await parser()).parseYaml(content);
}

/**
 * Loads the parser only when it is needed: it is a large part of the code, and many servers have no
 * such file.
 */
const parser = () => import("./yaml.ts");

/** @throws {TextError} */
export function readJson(path: string, content: string): unknown {
  const text = content.replace(/^\uFEFF/, "");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const message = reasonOf(error);
    const position = Number(/position (\d+)/.exec(message)?.[1] ?? quotedPosition(message, text) ?? text.length);
    // A quoted piece of the file may contain a secret.
    const [what = message] = message.split(/ in JSON at | at position | \(line |, (?:\.\.\.)?"/);
    throw errorAt(text, position, what);
  }
  const repeated = repeatedName(text, basename(path) === "package.json" ? "modhost" : undefined);
  if (repeated !== undefined)
    throw errorAt(text, repeated, "this name occurs twice in the object: names must be unique");
  // The package.json of a module has its manifest under the same key; that is not a configuration.
  const isManifest =
    basename(path) === "package.json" && isObject(value) && isObject(value.modhost) && "kind" in value.modhost;
  return isManifest ? {} : value;
}

function errorAt(text: string, position: number, what: string): TextError {
  const before = text.slice(0, position).split("\n");
  return new TextError(before.length, (before.at(-1)?.length ?? 0) + 1, what);
}

/** Number of characters around the wrong one that V8 quotes. */
const QUOTED_CHARACTERS = 10;

/**
 * Returns the position of the wrong character, if the message quotes its surroundings:
 * `Unexpected token 'b', ..."1,\n  b\n}" is not …`.
 */
function quotedPosition(message: string, text: string): number | undefined {
  const quoted = /, \.\.\."(.*)"(?:\.\.\.)? is not valid JSON$/s.exec(message)?.[1];
  const at = quoted === undefined ? -1 : text.indexOf(quoted);
  return at < 0 ? undefined : at + QUOTED_CHARACTERS;
}
