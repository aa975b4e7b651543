/**
 * Server-sent events: the arguments and results of `event_stream` from `modhost/net/http/server`.
 */

/** One event of a stream, as the browser's `EventSource` receives it. */
export interface ServerEvent {
  /** Its type; without it the browser calls it `message`. No line breaks. */
  readonly event?: string;
  /** Any text; its line breaks arrive as `\n`. */
  readonly data?: string;
  /** The value that a client sends as `Last-Event-ID` when it reconnects. No line breaks. */
  readonly id?: string;
  /** Milliseconds after which a client reconnects when it has lost the connection. */
  readonly retry?: number;
}

export interface EventStreamOptions {
  /**
   * Seconds without an event after which a comment shows proxies that the stream is alive. Default
   * 15; 0 for never.
   */
  readonly heartbeat?: number;
  /** Milliseconds after which a client reconnects when it has lost the connection. */
  readonly retry?: number;
  /**
   * Maximum number of bytes of events that may wait for a slow client; the stream ends when there
   * are more. Default 1 MiB.
   */
  readonly max_queue_bytes?: number;
}

/** A stream of server-sent events to one client. */
export interface EventStream {
  /** The `id` of the last event that a reconnecting client has received. */
  readonly last_event_id: string | undefined;
  /**
   * Aborted when the stream has ended: closed here, closed by its client, or because its module is
   * unloaded.
   */
  readonly signal: AbortSignal;
  /**
   * Sends an event; a text becomes its data. Resolves when the client's connection has taken it,
   * and rejects with STREAM_CLOSED when the stream has ended; a caller that does not await it need
   * not catch that. Throws a TypeError for a line break in `event` or `id`.
   */
  send(event: ServerEvent | string): Promise<void>;
  /** Sends a comment, which clients ignore. */
  comment(text?: string): Promise<void>;
  /** Ends the stream after everything that was sent. */
  close(): void;
}
