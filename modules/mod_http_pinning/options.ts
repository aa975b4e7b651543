import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  pinning_tokens: {
    type: "any",
    protects: true,
    secret: "keys",
    example: { "a-long-random-text": { user: "anna" } },
    describe:
      "Bearer tokens of the users who may pin: a list, or an object of tokens with the name of the user whose pins they manage. Without tokens, nobody can use the service.",
  },
  pinning_parallel: {
    type: "integer",
    default: 16,
    min: 1,
    max: 1000,
    describe: "How many pins are fetched at the same time; further ones are queued.",
  },
  pinning_timeout: {
    type: "period",
    default: "1h",
    min: 1,
    max: 2_000_000,
    describe: "A pin for which no data arrives for this long has failed.",
  },
} as const satisfies OptionDeclarations;
