/** The limits of a module, as the fields of `modules.NAME.limits`. */
import type { FieldsOf, OptionDeclaration, OptionDeclarations } from "../types.ts";
import { bytesOf } from "../util/size.ts";

const MIB = 1024 * 1024;

export const limitFields = {
  memory: {
    type: "size",
    default: "512MiB",
    min: 128 * MIB,
    unit: "bytes",
    describe:
      "Memory of its process and of the programs that it runs. At 80 % a fresh process takes over; beyond the limit it is killed. The heap gets at most three quarters of it, and at most isolated_heap.",
  },
  cpu: {
    type: "number",
    default: 1,
    min: 0.05,
    max: 1024,
    unit: "cores",
    describe: "Processor cores that it may use, on average over some seconds. A process that uses more is paused.",
  },
  request_cpu: {
    type: "period",
    default: 10,
    min: 0.1,
    max: 86_400,
    unit: "seconds",
    describe:
      "Processor time that one request may use until its response begins. Beyond that the process is killed, and the client gets 503.",
  },
  processes: {
    type: "integer",
    default: 16,
    min: 1,
    max: 65_536,
    describe: "Programs that it may run at once, if any are granted. With more of them it is killed.",
  },
  open_files: {
    type: "integer",
    default: 1024,
    min: 64,
    max: 1_048_576,
    describe:
      "Files and connections that it may have open at once: this many of both, and this many connections to other hosts.",
  },
  disk: {
    type: "size",
    default: "1GiB",
    min: MIB,
    unit: "bytes",
    describe:
      "Size of its data folder and its temporary files together; each file counts for at least 4 KiB. Beyond the limit it is killed. A single file that is larger is refused with EFBIG.",
  },
  requests: {
    type: "integer",
    default: 1000,
    min: 1,
    max: 1_000_000,
    describe: "Requests that it may have in progress at once. Further ones get 503 with Retry-After.",
  },
  subrequests: {
    type: "integer",
    default: 50,
    min: 1,
    max: 1_000_000,
    describe:
      "Calls of fetch and connections to other hosts for one request. Beyond that, once the response has begun and in work of its own, as many connections each second.",
  },
  log_lines: {
    type: "integer",
    default: 100,
    min: 1,
    max: 100_000,
    unit: "lines per second",
    describe:
      "Lines that it may log or print in a second, and ten times as many at once. A line counts once for each 1,024 characters. Further ones are counted and left out.",
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

const defaults = Object.fromEntries(
  Object.entries<OptionDeclaration>(limitFields).map(([name, { type, default: value }]) => [
    name,
    type === "size" ? bytesOf(value) : value,
  ]),
) as unknown as ModuleLimits;

/** Returns the limits of a module: those of its settings, and the default for each other one. */
export function limitsOf({ limits }: { readonly limits?: ModuleLimits }): ModuleLimits {
  return limits ?? defaults;
}
