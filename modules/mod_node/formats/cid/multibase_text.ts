/** Multibase text of any base that later versions of the reference know. */
import { NodeError } from "../../util/errors.ts";
import { laterBaseOf } from "./multibase.ts";
import { decodeMultibase } from "./multibase_decode.ts";

/** The bytes of a text with its prefix. @throws NodeError in the words of the reference */
export function decodeText(text: string): Uint8Array {
  if (text === "") throw new NodeError("cannot decode multibase for zero length string");
  const base = laterBaseOf(text);
  if (base === undefined) throw new NodeError("selected encoding not supported");
  const padding = /^base(?:32|64)(?!.*pad)/.test(base.name) ? text.indexOf("=") : -1;
  if (padding > 0) throw new NodeError(`illegal ${base.name.slice(0, 6)} data at input byte ${padding - 1}`);
  // As Go's decoders of these do.
  const given = /^base(32|64)/.test(base.name) ? text.replace(/[\r\n]/g, "") : text;
  return decodeMultibase(base, given);
}
