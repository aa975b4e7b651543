/** Bytes as multibase text, and back; uses no store. */
import { laterBaseNamed, laterBaseOf } from "../formats/cid/multibase.ts";
import { decodeMultibase } from "../formats/cid/multibase_decode.ts";
import { readAll } from "../util/async/read_all.ts";
import { NodeError } from "../util/errors.ts";
import { type ByteSource, piecesOf } from "./common.ts";

export interface MultibaseApi {
  /**
   * The text of bytes in a base, by name or prefix character, as UTF-8; `base64url` by default. That of `identity` need not be
   * text. @throws NodeError
   */
  encode(bytes: ByteSource, base?: string): Promise<Uint8Array>;
  /** The bytes of a text with its prefix. @throws NodeError */
  decode(text: ByteSource): Promise<Uint8Array>;
}

/** They are held in memory. */
const MAX_BYTES = 16 * 1024 * 1024;

export const multibaseApi = (): MultibaseApi => ({
  async encode(bytes, base = "base64url") {
    const { name, prefix, encoder } = laterBaseNamed(base);
    const given = await whole(bytes);
    return name === "identity" ? Buffer.concat([Buffer.from(prefix), given]) : Buffer.from(encoder.encode(given));
  },
  async decode(text) {
    const bytes = await whole(text);
    if (bytes[0] === 0) return bytes.subarray(1);
    const given = Buffer.from(bytes).toString();
    try {
      return decoded(given);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      throw new NodeError(`failed to decode multibase: ${error.message}`, { cause: error });
    }
  },
});

function decoded(text: string): Uint8Array {
  if (text === "") throw new NodeError("cannot decode multibase for zero length string");
  const base = laterBaseOf(text);
  if (base === undefined) throw new NodeError("selected encoding not supported");
  const padding = /^base(?:32|64)(?!.*pad)/.test(base.name) ? text.indexOf("=") : -1;
  if (padding > 0) throw new NodeError(`illegal ${base.name.slice(0, 6)} data at input byte ${padding - 1}`);
  // As Go's decoders of these do.
  const given = /^base(32|64)/.test(base.name) ? text.replace(/[\r\n]/g, "") : text;
  return decodeMultibase(base, given);
}

const whole = (source: ByteSource) =>
  readAll(piecesOf(source), MAX_BYTES, () => new NodeError(`more than ${MAX_BYTES} bytes are not taken`));
