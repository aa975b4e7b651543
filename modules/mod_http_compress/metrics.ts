/** Counts what compression has done, for the metrics and for the status of the module. */
import { createMetrics } from "../../core/index.ts";
import type { MetricsProvider, MiddlewareDescription } from "../../core/types.ts";
import type { Watcher } from "./compressor.ts";
import type { EncodingName } from "./encoders.ts";

type Counts = NonNullable<MiddlewareDescription["counts"]>;

const metricsOfCompression = () =>
  createMetrics({
    modhost_http_compress_answers_total: {
      kind: "counter",
      help: "Responses that were sent compressed.",
      labels: ["encoding"],
    },
    modhost_http_compress_in_bytes_total: {
      kind: "counter",
      help: "Bytes of these bodies before compression, including files from the cache.",
      unit: "bytes",
      labels: ["encoding"],
    },
    modhost_http_compress_out_bytes_total: {
      kind: "counter",
      help: "Bytes of these bodies after compression.",
      unit: "bytes",
      labels: ["encoding"],
    },
    modhost_http_compress_busy_total: {
      kind: "counter",
      help: "Responses that were sent uncompressed because a limit of compression was reached.",
    },
    modhost_http_compress_cache_hits_total: {
      kind: "counter",
      help: "Compressed files that were sent from the cache.",
    },
    modhost_http_compress_cache_bytes: {
      kind: "gauge",
      help: "Memory of the cache of compressed files.",
      unit: "bytes",
    },
  });

/** Counters of one entry. */
export interface Tally extends Watcher {
  readonly counts: Counts;
}

export class CompressMetrics {
  readonly #metrics = metricsOfCompression();
  readonly total = { bytesIn: 0, bytesOut: 0 };

  provider(cached: () => number): MetricsProvider {
    const own = this.#metrics;
    return {
      metrics: own.metrics,
      collect() {
        own.set("modhost_http_compress_cache_bytes", cached());
        return own.collect();
      },
    };
  }

  tally(): Tally {
    const own = this.#metrics;
    const { total } = this;
    const moved = new Map<EncodingName, { bytesIn: number; bytesOut: number }>();
    const seen = { cached: 0, busy: 0 };
    return {
      compressed: (encoding) => own.add("modhost_http_compress_answers_total", 1, encoding),
      moved(encoding, bytesIn, bytesOut) {
        own.add("modhost_http_compress_in_bytes_total", bytesIn, encoding);
        own.add("modhost_http_compress_out_bytes_total", bytesOut, encoding);
        const of = moved.get(encoding) ?? { bytesIn: 0, bytesOut: 0 };
        moved.set(encoding, of);
        for (const sum of [of, total]) {
          sum.bytesIn += bytesIn;
          sum.bytesOut += bytesOut;
        }
      },
      busy() {
        own.add("modhost_http_compress_busy_total");
        seen.busy += 1;
      },
      servedFromCache() {
        own.add("modhost_http_compress_cache_hits_total");
        seen.cached += 1;
      },
      get counts(): Counts {
        const bytes = [...moved].flatMap(([encoding, { bytesIn, bytesOut }]) => [
          { title: `${titles[encoding]}, before`, value: bytesIn, unit: "bytes" as const },
          { title: `${titles[encoding]}, after`, value: bytesOut, unit: "bytes" as const },
        ]);
        const others = [
          { title: "From the cache", value: seen.cached },
          { title: "Limit reached", value: seen.busy },
        ];
        return [...bytes, ...others.filter(({ value }) => value > 0)];
      },
    };
  }
}

const titles: Readonly<Record<EncodingName, string>> = { zstd: "Zstd", br: "Brotli", gzip: "Gzip" };
