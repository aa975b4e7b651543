import type { OptionDeclarations, OptionValue } from "../../core/types.ts";

export const options = {
  http_compress: {
    type: "object",
    keys: "apps",
    default: {},
    applies: "live",
    example: { "*": { except: ["/account"] }, files: { types: ["text/*", "image/svg+xml"] }, hello: { encodings: [] } },
    describe:
      'Which responses are compressed, by the name of the app; "*" is for all apps without an entry, except the RPC of the node.',
    entries: {
      encodings: {
        type: "strings",
        default: ["zstd", "br", "gzip"],
        describe:
          "Codings that may be used, of zstd, br and gzip; the one that the client prefers is used, or the first of several. Empty: nothing is compressed.",
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
        describe: "Content types of responses that are compressed; * stands for any text.",
      },
      min_size: {
        type: "size",
        unit: "bytes",
        default: 1024,
        describe: "Smaller bodies are sent uncompressed. Bodies of unknown length are compressed in any case.",
      },
      except: {
        type: "strings",
        default: [],
        describe:
          "Paths that are not compressed, with everything below them. Use it for pages that show secrets next to text that others can influence.",
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
    describe: "Memory for the cache of compressed files. 0: no cache.",
  },
  http_compress_cached_file: {
    type: "size",
    unit: "bytes",
    min: 0,
    default: 1024 * 1024,
    per_host: false,
    applies: "live",
    describe:
      "Files up to this size are compressed well, and cached. Larger ones are compressed fast, for each response.",
  },
  http_compress_jobs: {
    type: "integer",
    min: 1,
    max: 128,
    default: 2,
    per_host: false,
    applies: "live",
    describe:
      "Maximum number of concurrent compressions. They share the 4 threads of the file system. When all are busy, responses are sent uncompressed.",
  },
  http_compress_streams: {
    type: "integer",
    min: 0,
    default: 64,
    per_host: false,
    applies: "live",
    describe:
      "Maximum number of responses that are compressed piece by piece at a time, with about 1 MB of memory each; further ones are sent uncompressed.",
  },
} as const satisfies OptionDeclarations;

export type CompressEntry = NonNullable<OptionValue<typeof options.http_compress>>[string];
