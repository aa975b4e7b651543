/** Server-sent events: what `event_stream` of `modhost/net/http/server` takes and gives. */

/** One event of a stream, as the browser's `EventSource` takes it. */
export interface ServerEvent {
  /** Its type; without it the browser calls it `message`. No line breaks. */
  readonly event?: string;
  /** Any text; its line breaks arrive as `\n`. */
  readonly data?: string;
  /** What a client that comes back sends as `Last-Event-ID`. No line breaks. */
  readonly id?: string;
  /** Milliseconds after which a client that lost the connection comes back. */
  readonly retry?: number;
}

export interface EventStreamOptions {
  /** Seconds without an event after which a comment tells proxies that the stream lives. Default 15; 0 for none. */
  readonly heartbeat?: number;
  /** Milliseconds after which a client that lost the connection comes back. */
  readonly retry?: number;
  /** Bytes of events that may wait for a slow client; beyond them the stream ends. Default 1 MiB. */
  readonly max_queue_bytes?: number;
}

/** A stream of server-sent events to one client. */
export interface EventStream {
  /** The `id` of the last event that a client which comes back has seen. */
  readonly last_event_id: string | undefined;
  /** Aborted when the stream is over: closed, left by its client, or ended because its module leaves. */
  readonly signal: AbortSignal;
  /**
   * Sends an event; a text is its data. Resolves when the client's connection has taken it, rejects with STREAM_CLOSED
   * when the stream is over; who does not wait need not catch that. Throws a TypeError for a line break in `event` or
   * `id`.
   */
  send(event: ServerEvent | string): Promise<void>;
  /** Sends what clients ignore. */
  comment(text?: string): Promise<void>;
  /** Ends the stream after what has been sent. */
  close(): void;
}
