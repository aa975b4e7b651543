import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  http_dir_listing_entries: {
    type: "integer",
    default: 10_000,
    min: 1,
    max: 1_000_000,
    unit: "entries",
    applies: "live",
    per_host: false,
    describe:
      "Maximum number of entries that a listing shows. The listing of a larger folder also says how many entries it has.",
  },
} as const satisfies OptionDeclarations;
