import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { syntaxFault } from "../util/syntax.ts";
import { TextError } from "./text_error.ts";

/**
 * Returns the position in a script where an error arose: "name.ts:12", from the first frame of its
 * stack inside that file. Undefined if the stack does not name it.
 */
export async function scriptPosition(file: string, error: unknown): Promise<string | undefined> {
  // A TextError already contains its position.
  if (!(error instanceof Error) || error instanceof TextError) return undefined;
  const own = lineIn(file, error.stack);
  const fault = own === undefined && error instanceof SyntaxError ? await syntaxFault(file) : undefined;
  const line = own ?? fault?.line;
  const what = fault?.what === undefined ? "" : `${fault.what}; `;
  return line === undefined ? undefined : `${what}${basename(file)}:${line}`;
}

function lineIn(file: string, stack = ""): string | undefined {
  const names = [pathToFileURL(file).href, file].map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`(?:${names.join("|")})(?:\\?[^:\\s]*)?:(\\d+)`).exec(stack)?.[1];
}
