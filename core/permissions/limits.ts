/** The limits of a module, as the fields of `modules.NAME.limits`. */
import type { FieldsOf, OptionDeclarations } from "../types.ts";

const MIB = 1024 * 1024;

export const limitFields = {
  open_files: {
    type: "integer",
    default: 256,
    min: 64,
    max: 1_048_576,
    describe:
      "Files and connections that it may have open at once: this many of both, and this many connections to other hosts.",
  },
  message_size: {
    type: "size",
    default: "4MiB",
    min: 64 * 1024,
    max: 256 * MIB,
    unit: "bytes",
    describe: "Size of one message to the host.",
  },
} as const satisfies OptionDeclarations;

/** The limits of one module; sizes are bytes, and periods are seconds. */
export type ModuleLimits = FieldsOf<typeof limitFields>;
