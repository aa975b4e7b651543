/** Counts what guards have refused, for the metrics and for the status of the module. */
import { createMetrics } from "../../core/index.ts";
import type { CountedMetrics, MiddlewareDescription } from "../../core/types.ts";
import type { Reason } from "./refusal.ts";

const TOTAL = "modhost_http_guard_refusals_total";

const titles: Readonly<Record<Reason, string>> = {
  address: "Refused by address",
  https: "Redirected to HTTPS",
  rate: "Refused by rate",
  sign_in: "Refused sign-ins",
  busy: "Too busy to check",
};

export class Refusals {
  readonly metrics: CountedMetrics<typeof TOTAL> = createMetrics({
    [TOTAL]: {
      kind: "counter",
      help: "Requests that a guard refused: address, https (redirected), rate, sign_in, busy (too many passwords to check).",
      labels: ["app", "reason"],
    },
  });
  readonly #apps = new Map<string, Map<Reason, { value: number; last: number }>>();

  add(app: string, reason: Reason): void {
    this.metrics.add(TOTAL, 1, app, reason);
    const reasons = this.#apps.get(app) ?? new Map<Reason, { value: number; last: number }>();
    this.#apps.set(app, reasons);
    reasons.set(reason, { value: (reasons.get(reason)?.value ?? 0) + 1, last: Date.now() });
  }

  of(app: string): NonNullable<MiddlewareDescription["counts"]> {
    return [...(this.#apps.get(app) ?? [])].map(([reason, counted]) => ({ title: titles[reason], ...counted }));
  }
}
