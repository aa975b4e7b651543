import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  http_health_optional: {
    type: "strings",
    default: [],
    per_host: false,
    example: ["http_pinning"],
    describe: "Modules whose failure to load does not make /health/ready respond with 503.",
  },
} as const satisfies OptionDeclarations;
