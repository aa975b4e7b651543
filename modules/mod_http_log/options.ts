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
    describe: "File for the request log, as JSON lines. If not set, requests are logged to standard output.",
  },
  http_log_query: {
    type: "enum",
    values: ["none", "redacted", "full"],
    default: "redacted",
    per_host: false,
    describe:
      "How query strings are logged: not at all (none), with values that look like secrets masked (redacted), or as sent (full).",
  },
  http_log_slow: {
    type: "period",
    min: 0,
    unit: "seconds",
    per_host: false,
    describe: "Requests that take longer than this are logged as warnings.",
  },
} as const satisfies OptionDeclarations;
