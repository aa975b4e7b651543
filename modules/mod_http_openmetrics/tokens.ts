/** Token metrics: how each token was used, and what was refused. Each token has its own series. */
import type { MetricDeclarations, MetricSample, MetricsProvider, Module } from "../../core/types.ts";

const tokenMetrics = {
  modhost_token_requests_total: {
    kind: "counter",
    help: "Requests that were allowed by a token.",
    labels: ["token"],
  },
  modhost_token_refusals_total: {
    kind: "counter",
    help: "Refused requests with a token, by reason: unknown (without the token's name), expired, rate, quota, scope.",
    labels: ["token", "reason"],
  },
  modhost_token_received_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of the bodies of requests with a token.",
    labels: ["token"],
  },
  modhost_token_sent_bytes_total: {
    kind: "counter",
    unit: "bytes",
    help: "Bytes of responses to requests with a token.",
    labels: ["token"],
  },
} as const satisfies MetricDeclarations;

type Sample = MetricSample & { readonly name: keyof typeof tokenMetrics };

export function tokenMetricsProvider({ server }: Module): MetricsProvider {
  return {
    metrics: tokenMetrics,
    collect: () =>
      server.tokens.metrics().flatMap(({ name: token, requests, received, sent, refused }) => {
        const samples = Object.entries(refused).map(([reason, value]): Sample => {
          return { name: "modhost_token_refusals_total", labels: { token: token ?? "", reason }, value };
        });
        if (token === undefined) return samples;
        const labels = { token };
        samples.push(
          { name: "modhost_token_requests_total", labels, value: requests },
          { name: "modhost_token_received_bytes_total", labels, value: received },
          { name: "modhost_token_sent_bytes_total", labels, value: sent },
        );
        return samples;
      }),
  };
}
