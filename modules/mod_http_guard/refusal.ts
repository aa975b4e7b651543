/**
 * Why a request does not reach its app, as values of the metric label `reason`, in the order of the
 * checks.
 */
export type Reason = "address" | "https" | "rate" | "sign_in" | "busy";

export interface Refusal {
  readonly reason: Reason;
  readonly status: number;
  /** A sentence for the client, shown on the error page. */
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}
