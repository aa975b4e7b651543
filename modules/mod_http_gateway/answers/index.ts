/** Which form of content a request gets. */
import type { ResponseFields } from "../../../core/types.ts";
import type { Asked } from "../asked.ts";
import { requireTrustless } from "../request/trustless.ts";
import type { Found } from "../resolve.ts";
import { unixfsAnswer } from "./unixfs.ts";

/** `find` follows the path, and is asked for once. @throws NodeError, {Redirect}, {Refusal} */
export async function answerFound(asked: Asked, find: () => Promise<Found>): Promise<ResponseFields> {
  if (!asked.settings.deserialized) requireTrustless(asked.place, asked.wanted.format);
  return unixfsAnswer(asked, await find());
}
