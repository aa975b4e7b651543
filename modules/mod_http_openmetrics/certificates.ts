/** The certificates of the server: when each of them ends. */
import type { MetricDeclarations, MetricsProvider, Module } from "../../core/types.ts";

export const certificateMetrics = {
  modhost_certificate_expiry_seconds: {
    kind: "gauge",
    unit: "seconds",
    help: "When the certificate that is served for a name expires, seconds since 1970.",
    labels: ["name"],
  },
} as const satisfies MetricDeclarations;

export function certificateFigures({ server }: Module): MetricsProvider {
  return {
    metrics: certificateMetrics,
    collect: () =>
      server.certificates().map(({ name, expires }) => {
        return { name: "modhost_certificate_expiry_seconds", labels: { name }, value: Date.parse(expires) / 1000 };
      }),
  };
}
