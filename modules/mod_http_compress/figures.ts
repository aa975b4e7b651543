import { createFigures } from "../../core/index.ts";
import type { MetricsProvider } from "../../core/types.ts";
import type { Watcher } from "./compressor.ts";

/** What compression has done, as figures and as a sum. */
export function compressionFigures() {
  const figures = createFigures({
    modhost_http_compress_answers_total: {
      kind: "counter",
      help: "Answers that went out compressed.",
      labels: ["encoding"],
    },
    modhost_http_compress_in_bytes_total: {
      kind: "counter",
      help: "Bytes of bodies before compression, files from memory among them.",
      unit: "bytes",
      labels: ["encoding"],
    },
    modhost_http_compress_out_bytes_total: {
      kind: "counter",
      help: "Bytes that these bodies have been sent as.",
      unit: "bytes",
      labels: ["encoding"],
    },
    modhost_http_compress_busy_total: {
      kind: "counter",
      help: "Answers that went out as they are, since the bounds of compression were reached.",
    },
    modhost_http_compress_cache_hits_total: { kind: "counter", help: "Files that came compressed from memory." },
    modhost_http_compress_cache_bytes: { kind: "gauge", help: "Memory of compressed files.", unit: "bytes" },
  });
  const total = { bytesIn: 0, bytesOut: 0 };
  const watcher: Watcher = {
    answered: (encoding) => figures.add("modhost_http_compress_answers_total", 1, encoding),
    moved: (encoding, bytesIn, bytesOut) => {
      figures.add("modhost_http_compress_in_bytes_total", bytesIn, encoding);
      figures.add("modhost_http_compress_out_bytes_total", bytesOut, encoding);
      total.bytesIn += bytesIn;
      total.bytesOut += bytesOut;
    },
    busy: () => figures.add("modhost_http_compress_busy_total"),
    kept: () => figures.add("modhost_http_compress_cache_hits_total"),
  };
  const provider = (cached: () => number): MetricsProvider => ({
    metrics: figures.metrics,
    collect() {
      figures.set("modhost_http_compress_cache_bytes", cached());
      return figures.collect();
    },
  });
  return { watcher, total: total as Readonly<typeof total>, provider };
}
