/** Headers as options have them. */
import { invalidOption } from "../util/errors.ts";
import { isToken } from "../util/header_fields.ts";

/**
 * Headers by name, in their order: `{ X-Frame-Options: DENY }`. What an empty text means is the option's matter.
 * @throws {ModhostError} OPTION_INVALID naming the one that cannot be sent
 */
export function readHeaders(headers: Readonly<Record<string, unknown>>, option: string): [string, string][] {
  return Object.entries(headers).map(([name, value]) => {
    const place = `${option}.${name}`;
    checkHeaderName(name, place);
    if (typeof value !== "string" || !/^[\t\x20-\x7e]*$/.test(value))
      throw invalidOption(place, value, "it must be text of one line");
    return [name, value];
  });
}

/** @throws {ModhostError} OPTION_INVALID */
export function checkHeaderName(name: string, option: string): void {
  if (!isToken(name)) throw invalidOption(option, name, "it must be the name of a header");
}
