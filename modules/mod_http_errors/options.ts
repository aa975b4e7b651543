import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  http_errors_detailed: {
    type: "boolean",
    default: false,
    per_host: false,
    describe: "Show errors with their stack trace to clients. Use it for development only.",
  },
  http_errors_default_message: {
    type: "string",
    default: "The request could not be answered.",
    per_host: false,
    describe: "Text on error pages for status codes that have no text of their own.",
  },
  http_errors_messages: {
    type: "object",
    default: {},
    per_host: false,
    describe:
      'Texts on error pages by status code, such as { "404": "Nothing here." }; they replace the built-in ones.',
  },
} as const satisfies OptionDeclarations;
