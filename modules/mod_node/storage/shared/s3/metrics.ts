/** Metrics of the requests to an object store. Providers charge by request. */

/**
 * The kinds of requests. `part` uploads a piece of a large object; `upload` begins, completes or
 * aborts such an upload.
 */
export const REQUEST_KINDS = ["put", "part", "upload", "get", "head", "delete", "list"] as const;

export type RequestKind = (typeof REQUEST_KINDS)[number];

/** Totals since the store was opened. */
export interface RequestMetrics {
  /** Requests sent, including retries. */
  requests: number;
  /** Requests that repeated another one. */
  retries: number;
  /** Requests without a usable response: no connection, no response in time, or an error status. */
  errors: number;
  /** Bytes of bodies, including those of aborted requests. */
  sent: number;
  received: number;
  /** Total milliseconds from sending a request to the end of its response. */
  time: number;
}

export type MetricsByKind = Readonly<Record<RequestKind, Readonly<RequestMetrics>>>;

export function newMetrics(): Record<RequestKind, RequestMetrics> {
  const none = () => ({ requests: 0, retries: 0, errors: 0, sent: 0, received: 0, time: 0 });
  return { put: none(), part: none(), upload: none(), get: none(), head: none(), delete: none(), list: none() };
}
