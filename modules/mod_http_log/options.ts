import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  http_log: {
    type: "boolean",
    default: true,
    per_host: false,
    describe: "Log every request.",
  },
  http_log_file: {
    type: "path",
    per_host: false,
    describe: "File that gets the log of requests, as JSON lines; standard output when not set.",
  },
  http_log_query: {
    type: "enum",
    values: ["none", "redacted", "full"],
    default: "redacted",
    per_host: false,
    describe:
      "How query strings are logged: not at all, with the values of what looks like a secret hidden, or as sent.",
  },
  http_log_slow: {
    type: "period",
    min: 0,
    unit: "seconds",
    per_host: false,
    describe: "Requests that take longer are logged as warnings.",
  },
} as const satisfies OptionDeclarations;
