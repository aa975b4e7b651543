import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  pinning_tokens: {
    type: "any",
    secret: "keys",
    example: { "a-long-random-text": { user: "anna" } },
    describe:
      "Bearer tokens of those who may have something pinned: a list, or an object from token to the user whose pins it is for. Without any nobody is let in.",
  },
  pinning_parallel: {
    type: "integer",
    default: 16,
    min: 1,
    max: 1000,
    describe: "How many pins are fetched at a time; the others are queued.",
  },
  pinning_timeout: {
    type: "period",
    default: "1h",
    min: 1,
    max: 2_000_000,
    describe: "A pin of which nothing arrives for so long has failed.",
  },
} as const satisfies OptionDeclarations;
