/** A pin request as it is stored and shown. */
import type { Wish } from "./pin_object.ts";

export const statuses = ["queued", "pinning", "pinned", "failed"] as const;
export type Status = (typeof statuses)[number];

export interface PinRequest {
  /** Key of the request in the store: `<user>/<id>`. */
  readonly key: string;
  readonly id: string;
  readonly wish: Wish;
  readonly status: Status;
  /** Milliseconds since 1970, unique per user. */
  readonly created: number;
  /**
   * The session of the host that fetches it, if several share a store. Other hosts take the request
   * over when that session ends.
   */
  readonly worker?: number | undefined;
  /** The reason of a failure. */
  readonly details?: string;
  /**
   * Set when the request has been removed, as far as callers can see. Its pin is released once the
   * request with the key `after`, if there is one, is settled.
   */
  readonly leaving?: { readonly after?: string };
}
