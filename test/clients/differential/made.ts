/** Helpers of several families: parts of a body, options, and fields of responses. */
import type { SentPart } from "#test/unit/modules/mod_http_api/support.ts";
import type { Compared } from "./family.ts";
import type { CaseRandom } from "./random.ts";

export const upload = (content: SentPart["content"]): SentPart => ({
  name: "file",
  filename: "f",
  type: "application/octet-stream",
  ...(content !== undefined && { content }),
});

/** Adds each option with a probability, as the end of a query. */
export const flags = (random: CaseRandom, options: readonly string[], probability = 0.3): string =>
  random
    .some(probability, options)
    .map((option) => `&${option}`)
    .join("");

/** Returns a field of a successful response that is one object in JSON. */
export function fieldOf({ response: text, refusal }: Compared, name: string): string | undefined {
  if (refusal !== undefined || !text.startsWith("200 {")) return undefined;
  try {
    const value = (JSON.parse(text.slice(4)) as Record<string, unknown>)[name];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
