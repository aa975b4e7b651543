/** What families have in common: parts of a body, options, and fields of answers. */
import type { SentPart } from "#test/unit/modules/mod_http_api/support.ts";
import type { Compared } from "./family.ts";
import type { Random } from "./random.ts";

export const upload = (content: SentPart["content"]): SentPart => ({
  name: "file",
  filename: "f",
  type: "application/octet-stream",
  ...(content !== undefined && { content }),
});

/** Each option with a probability, as the end of a query. */
export const flags = (random: Random, options: readonly string[], probability = 0.3): string =>
  random
    .some(probability, options)
    .map((option) => `&${option}`)
    .join("");

/** A field of a successful answer that is one object in JSON. */
export function fieldOf({ response: answer, refusal }: Compared, name: string): string | undefined {
  if (refusal !== undefined || !answer.startsWith("200 {")) return undefined;
  try {
    const value = (JSON.parse(answer.slice(4)) as Record<string, unknown>)[name];
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
