/** What was asked of an object store: its requests are its price. */

/** The kinds of requests. `part`: a piece of a large object; `upload`: begins, completes or abandons one. */
export const REQUEST_KINDS = ["put", "part", "upload", "get", "head", "delete", "list"] as const;

export type RequestKind = (typeof REQUEST_KINDS)[number];

/** Since the store was opened. */
export interface RequestFigures {
  /** Sent, repeated ones as well. */
  requests: number;
  /** Of them, those that repeat another. */
  retries: number;
  /** Of them, those without a usable answer: no connection, no answer in time, a status that tells of a failure. */
  errors: number;
  /** Bytes of bodies, of those that broke off as well. */
  sent: number;
  received: number;
  /** Milliseconds from sending to the end of the answer, together. */
  time: number;
}

export type Figures = Readonly<Record<RequestKind, Readonly<RequestFigures>>>;

export function newFigures(): Record<RequestKind, RequestFigures> {
  const none = () => ({ requests: 0, retries: 0, errors: 0, sent: 0, received: 0, time: 0 });
  return { put: none(), part: none(), upload: none(), get: none(), head: none(), delete: none(), list: none() };
}
