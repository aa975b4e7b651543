/** Checks whether headers of the configuration can be sent. */
import { isDeepStrictEqual } from "node:util";
import { failure } from "../../util/errors.ts";
import { type Document, valueAt } from "./schema.ts";

/** A token as HTTP defines it. */
const fieldName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Visible characters, blanks, tabs and the upper half of Latin-1. */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Headers by which server and client agree on connections and message boundaries. A fixed value
 * breaks responses.
 */
const framing: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Returns why a header cannot be sent with responses; undefined if it can. */
export function headerFault(name: string, values: readonly string[]): string | undefined {
  if (!fieldName.test(name)) return "this is not a valid header name";
  if (framing.has(name.toLowerCase())) return "the server sets this header itself";
  if (!values.every((value) => fieldValue.test(value))) {
    return "a value has a line break or another character that headers cannot carry";
  }
  return undefined;
}

/**
 * Checks changed entries of `API.HTTPHeaders`. Unchanged entries are not checked.
 *
 * @throws NodeError that names the header which cannot be sent
 */
export function requireSendableHeaders(next: Document, before: Document): void {
  const headersOf = (document: Document) => valueAt(document, "API.HTTPHeaders") ?? {};
  const old = headersOf(before);
  for (const [name, values] of Object.entries(headersOf(next))) {
    if (Object.hasOwn(old, name) && isDeepStrictEqual(old[name], values)) continue;
    const fault = headerFault(name, values ?? []);
    if (fault !== undefined)
      throw failure("CONFIG_INVALID", { reason: `API.HTTPHeaders.${JSON.stringify(name)}: ${fault}` });
  }
}
