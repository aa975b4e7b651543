import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  traces_take_over: {
    type: "enum",
    values: ["all", "proxies", "none"],
    default: "all",
    per_host: false,
    describe:
      "Callers whose trace context (the headers traceparent and tracestate) is used: all, only trusted_proxies, or none. A caller that sends a trace context can cause a request to be recorded.",
  },
} as const satisfies OptionDeclarations;
