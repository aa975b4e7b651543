/** The limits of a module, as the fields of `modules.NAME.limits`. */
import type { FieldsOf, OptionDeclarations } from "../types.ts";

const MIB = 1024 * 1024;

export const limitFields = {
  cpu: {
    type: "number",
    default: 1,
    min: 0.01,
    max: 1024,
    unit: "seconds per second",
    describe: "Processor time that it may use per second: 0.5 is half of a processor, 2 are two.",
  },
  request_cpu: {
    type: "period",
    default: 10,
    min: 0.001,
    max: 86_400,
    unit: "seconds",
    describe: "Processor time that one request may use.",
  },
  memory: {
    type: "size",
    default: "256MiB",
    min: 64 * MIB,
    unit: "bytes",
    describe: "Memory of its process and of the processes that it starts.",
  },
  open_files: {
    type: "integer",
    default: 256,
    min: 32,
    max: 1_048_576,
    describe: "Files and connections that it may have open at once.",
  },
  processes: {
    type: "integer",
    default: 16,
    min: 1,
    max: 32_768,
    describe: "Processes that it may have started at once, if it may run programs.",
  },
  disk: {
    type: "size",
    default: "1GiB",
    min: 0,
    unit: "bytes",
    describe: "Size of its own folder below `data_path`.",
  },
  requests: {
    type: "integer",
    default: 256,
    min: 1,
    max: 1_000_000,
    describe: "Requests that it may handle at once; further ones get 503.",
  },
  subrequests: {
    type: "integer",
    default: 50,
    min: 0,
    max: 1_000_000,
    describe: "Connections and requests to other hosts that it may make for one request.",
  },
  log_lines: {
    type: "integer",
    default: 100,
    min: 1,
    max: 1_000_000,
    unit: "per second",
    describe: "Lines that it may log per second.",
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
