import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { syntaxErrorLine } from "../util/syntax.ts";

/**
 * Where in a script an error arose: "name.ts:12", from the first frame of its stack inside that file. Undefined when
 * the stack does not name it.
 */
export async function placeOf(file: string, error: unknown): Promise<string | undefined> {
  if (!(error instanceof Error)) return undefined;
  const line = lineIn(file, error.stack) ?? (error instanceof SyntaxError ? await syntaxErrorLine(file) : undefined);
  return line === undefined ? undefined : `${basename(file)}:${line}`;
}

function lineIn(file: string, stack = ""): string | undefined {
  const names = [pathToFileURL(file).href, file].map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`(?:${names.join("|")})(?:\\?[^:\\s]*)?:(\\d+)`).exec(stack)?.[1];
}
