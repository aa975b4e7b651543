import type { OptionDeclarations, OptionValue } from "../../core/types.ts";

export const options = {
  http_compress: {
    type: "object",
    keys: "apps",
    default: {},
    applies: "live",
    example: { "*": { except: ["/account"] }, files: { types: ["text/*", "image/svg+xml"] }, hello: { encodings: [] } },
    describe:
      'Whose answers are compressed, by the app\'s name; "*" is for all without an entry, except the RPC of the node.',
    entries: {
      encodings: {
        type: "strings",
        default: ["zstd", "br", "gzip"],
        describe:
          "Of zstd, br and gzip, what may be used; the first that the client likes best. Empty: nothing is compressed.",
      },
      types: {
        type: "strings",
        default: [
          "text/*",
          "application/json",
          "application/*+json",
          "application/javascript",
          "application/x-ndjson",
          "application/xml",
          "application/*+xml",
          "application/wasm",
          "image/svg+xml",
          "image/bmp",
          "image/x-icon",
          "image/vnd.microsoft.icon",
          "font/otf",
          "font/ttf",
        ],
        describe: "Content types of answers that are compressed; * stands for any text.",
      },
      min_size: {
        type: "size",
        unit: "bytes",
        default: 1024,
        describe:
          "Smaller bodies are sent as they are. Those that come in pieces, without a length, are compressed anyway.",
      },
      except: {
        type: "strings",
        default: [],
        describe:
          "Paths that are left alone, with all below them: pages that show secrets beside what a stranger can put there.",
      },
      event_streams: {
        type: "boolean",
        default: false,
        describe: "Compress event streams, too; each event is sent at once.",
      },
    },
  },
  http_compress_cache: {
    type: "size",
    unit: "bytes",
    min: 0,
    default: 32 * 1024 * 1024,
    per_host: false,
    applies: "live",
    describe: "Memory for compressed files. 0: none is kept.",
  },
  http_compress_cached_file: {
    type: "size",
    unit: "bytes",
    min: 0,
    default: 1024 * 1024,
    per_host: false,
    applies: "live",
    describe: "Larger files are compressed anew for each answer, fast; up to this size they are compressed well, once.",
  },
  http_compress_jobs: {
    type: "integer",
    min: 1,
    max: 128,
    default: 2,
    per_host: false,
    applies: "live",
    describe:
      "Compressions at once. They share the threads of the file system, of which there are 4; when all are taken, answers go out as they are.",
  },
  http_compress_streams: {
    type: "integer",
    min: 0,
    default: 64,
    per_host: false,
    applies: "live",
    describe:
      "Answers that are compressed piece by piece at a time, about 1 MB of memory each; further ones go out as they are.",
  },
} as const satisfies OptionDeclarations;

export type CompressEntry = NonNullable<OptionValue<typeof options.http_compress>>[string];
