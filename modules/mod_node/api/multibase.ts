/** Encodes and decodes multibase text, without access to any store. */
import { laterBaseNamed } from "../formats/cid/multibase.ts";
import { decodeSteps, encodeSteps } from "../formats/cid/multibase_text.ts";
import { readAll } from "../util/async/read_all.ts";
import { inSlices } from "../util/async/steps.ts";
import { failure } from "../util/errors.ts";
import { type ByteSource, piecesOf } from "./common.ts";

export interface MultibaseApi {
  /**
   * Encodes bytes in a base, given by name or prefix character; `base64url` by default. The result
   * is UTF-8 text, except for the base `identity`. @throws NodeError
   */
  encode(bytes: ByteSource, base?: string): Promise<Uint8Array>;
  /** Decodes a text with its prefix. @throws NodeError */
  decode(text: ByteSource): Promise<Uint8Array>;
}

/** Maximum input size in bytes; the input is buffered in memory. */
const MAX_BYTES = 16 * 1024 * 1024;

export const multibaseApi = (): MultibaseApi => ({
  async encode(bytes, base = "base64url") {
    const known = laterBaseNamed(base);
    return inSlices(encodeSteps(known, await whole(bytes)));
  },
  async decode(text) {
    const bytes = await whole(text);
    if (bytes[0] === 0) return bytes.subarray(1);
    const given = Buffer.from(bytes).toString();
    try {
      return await inSlices(decodeSteps(given));
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      throw failure("MULTIBASE_INVALID", { reason: `failed to decode multibase: ${error.message}` }, error);
    }
  },
});

const whole = (source: ByteSource) =>
  readAll(piecesOf(source), MAX_BYTES, () =>
    failure("INPUT_TOO_LARGE", { reason: `more than ${MAX_BYTES} bytes are not accepted` }),
  );
