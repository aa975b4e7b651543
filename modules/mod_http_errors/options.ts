import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  http_errors_detailed: {
    type: "boolean",
    default: false,
    per_host: false,
    describe: "Show clients what was thrown, stack included: for development only.",
  },
  http_errors_default_message: {
    type: "string",
    default: "The request could not be answered.",
    per_host: false,
    describe: "Sentence for status codes that have none of their own.",
  },
  http_errors_messages: {
    type: "object",
    default: {},
    per_host: false,
    describe: 'Sentences by status code, such as { "404": "Nothing here." }, before the built-in ones.',
  },
} as const satisfies OptionDeclarations;
