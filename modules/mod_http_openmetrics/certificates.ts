/** Metrics of the server's certificates: when each expires, and the state of ACME orders. */
import type { MetricDeclarations, MetricSample, MetricsProvider, Module } from "../../core/types.ts";

export const certificateMetrics = {
  modhost_certificate_expiry_seconds: {
    kind: "gauge",
    unit: "seconds",
    help: "When the certificate that is served for a name expires, seconds since 1970.",
    labels: ["name"],
  },
  modhost_acme_failures: {
    kind: "gauge",
    help: "Failed attempts in a row to get the certificate of a name from the authority; 0 if the last one succeeded.",
    labels: ["name"],
  },
  modhost_acme_next_try_seconds: {
    kind: "gauge",
    unit: "seconds",
    help: "When the server next contacts the authority about the certificate of a name, seconds since 1970.",
    labels: ["name"],
  },
} as const satisfies MetricDeclarations;

type Sample = MetricSample & { readonly name: keyof typeof certificateMetrics };

const secondsOf = (time: string) => Date.parse(time) / 1000;

export function certificateMetricsProvider({ server }: Module): MetricsProvider {
  return {
    metrics: certificateMetrics,
    collect: () =>
      server.certificates().flatMap(({ name, expires, order }) => {
        const labels = { name };
        const samples: Sample[] = [];
        if (expires !== undefined)
          samples.push({ name: "modhost_certificate_expiry_seconds", labels, value: secondsOf(expires) });
        if (order !== undefined) {
          samples.push(
            { name: "modhost_acme_failures", labels, value: order.failures },
            { name: "modhost_acme_next_try_seconds", labels, value: secondsOf(order.next_try) },
          );
        }
        return samples;
      }),
  };
}
