/** Parses the headers in options. */
import { invalidOption } from "../../util/errors.ts";
import { isToken } from "../../util/header_fields.ts";

/**
 * Returns headers by name, in their order: `{ X-Frame-Options: DENY }`. The option decides what an
 * empty text means.
 * @throws {ModhostError} OPTION_INVALID naming the header that cannot be sent
 */
export function readHeaders(headers: Readonly<Record<string, unknown>>, option: string): [string, string][] {
  return Object.entries(headers).map(([name, value]) => {
    const entry = `${option}.${name}`;
    checkHeaderName(name, entry);
    if (typeof value !== "string" || !/^[\t\x20-\x7e]*$/.test(value))
      throw invalidOption(entry, value, "it must be text of one line");
    return [name, value];
  });
}

/** @throws {ModhostError} OPTION_INVALID */
export function checkHeaderName(name: string, option: string): void {
  if (!isToken(name)) throw invalidOption(option, name, "it must be the name of a header");
}
