import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  traces_take_over: {
    type: "enum",
    values: ["all", "proxies", "none"],
    default: "all",
    per_host: false,
    describe:
      "Whose trace context (the headers traceparent and tracestate) is taken over: that of all callers, of trusted_proxies only, or of none. Whoever sends one may say that a request is to be recorded.",
  },
} as const satisfies OptionDeclarations;
