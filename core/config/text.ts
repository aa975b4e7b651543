/** The text of a config file in YAML or JSON: read, and places in it. */
import { basename, extname } from "node:path";
import { reasonOf } from "../util/errors.ts";
import { isObject } from "./convert.ts";
import { TextError, type TextPlace } from "./text_error.ts";

export type TextFormat = "yaml" | "json" | "script";

export function formatOf(file: string): TextFormat {
  const extension = extname(basename(file).replace(/^\./, ""));
  if (extension === ".json") return "json";
  return [".ts", ".js", ".mjs", ".cjs"].includes(extension) ? "script" : "yaml";
}

/** What a file would give if this were its text; not for scripts. @throws {TextError} */
export async function readText(file: string, text: string): Promise<unknown> {
  return formatOf(file) === "json" ? readJson(file, text) : readYaml(file, text);
}

/** Where an option stands in a text, by its path: `http_ports`, `hosts.www.example.org.http_files_dir`. */
export async function placeIn(text: string, path: string): Promise<TextPlace | undefined> {
  return (await parser()).placeIn(text, path);
}

/** @throws {TextError} */
export async function readYaml(_path: string, content: string): Promise<unknown> {
  return (await parser()).parseYaml(content);
}

/** A good part of what a server loads at all: not every server has such a file. */
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
