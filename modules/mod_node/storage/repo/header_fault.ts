/** Which headers of the configuration can be sent. */
import { isDeepStrictEqual } from "node:util";
import { NodeError } from "../../util/errors.ts";
import { type Document, valueAt } from "./schema.ts";

/** What HTTP calls a token. */
const fieldName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Visible characters, blanks, tabs and the upper half of Latin-1. */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Fields by which server and client agree on one connection and one message; a fixed value breaks answers. */
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

/** Why a header cannot be sent with answers; undefined if it can. */
export function headerFault(name: string, values: readonly string[]): string | undefined {
  if (!fieldName.test(name)) return "that is not a name of a header";
  if (framing.has(name.toLowerCase())) return "the server sets this header itself";
  if (!values.every((value) => fieldValue.test(value))) {
    return "a value has a line break or another character that headers cannot carry";
  }
  return undefined;
}

/**
 * Checks what a change makes of `API.HTTPHeaders`; what was there before may stay as it is.
 *
 * @throws NodeError that names the header which cannot be sent
 */
export function requireSendableHeaders(next: Document, before: Document): void {
  const headersOf = (document: Document) => valueAt(document, "API.HTTPHeaders") ?? {};
  const old = headersOf(before);
  for (const [name, values] of Object.entries(headersOf(next))) {
    if (Object.hasOwn(old, name) && isDeepStrictEqual(old[name], values)) continue;
    const fault = headerFault(name, values ?? []);
    if (fault !== undefined) throw new NodeError(`API.HTTPHeaders.${JSON.stringify(name)}: ${fault}`);
  }
}
