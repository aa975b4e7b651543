import type { IncomingMessage } from "node:http";
import type { DefaultHeaders, Module, Tokens } from "../types.ts";

/** Settings of the HTTP service from the configuration. Times are in seconds, sizes in bytes. */
export interface HttpSettings {
  /** Largest buffered request body. */
  readonly maxContentSize: number;
  readonly maxHeaderSize: number;
  /** A request head must be complete within this time. */
  readonly headTimeout: number;
  /**
   * While the server waits for a client to send or to read, at least `progressBytes` must be
   * transferred in each period of this length.
   */
  readonly progressTimeout: number;
  readonly progressBytes: number;
  /** A connection without a request is closed after this time. */
  readonly idleTimeout: number;
  /** Concurrent streams of one HTTP/2 connection. */
  readonly maxStreams: number;
  /** Whether HTTPS offers HTTP/2, except at `http1Ports`. */
  readonly http2?: boolean | undefined;
  readonly http1Ports?: readonly number[] | undefined;
  /**
   * Bytes of all responses together that may wait for clients. Beyond that, clients that read
   * nothing are cut.
   */
  readonly maxUnsent: number;
  /** Addresses and CIDR ranges whose forwarding headers are trusted. */
  readonly trustedProxies: readonly string[];
  /** Read X-Forwarded-For and X-Forwarded-Proto (true), or the Forwarded header (false). */
  readonly legacyForwarded: boolean;
  /** Virtual hosts; empty: any Host is served. */
  readonly hosts: readonly string[];
  /** Serves requests for unknown hosts. */
  readonly defaultHost: string | undefined;
  readonly websocket: WebsocketLimits;
  /** Headers for responses that come from no app and lack them. */
  readonly defaultHeaders?: DefaultHeaders | undefined;
}

export interface WebsocketLimits {
  /**
   * Seconds between pings. A client that is silent for as long after a ping is cut; 0 turns pings
   * off.
   */
  readonly pingInterval: number;
  /** A client that does not confirm the close within this time is cut. */
  readonly closeTimeout: number;
  /** Largest message that is accepted, unless the app sets another limit. */
  readonly maxMessage: number;
  /** Memory that may wait for a slow client. One more message beyond it cuts the connection. */
  readonly maxUnsent: number;
}

/** The part of the host that the service uses: events, tokens and a log. */
export interface HttpEnvironment {
  /** Fires an event to the hooks of a host, or of all hosts ("*"). Returns the first result. */
  fire(event: string, data: unknown, host: string): unknown;
  /** Calls every hook of a host. A failing hook does not stop the others. */
  announce(event: string, data: unknown, host: string): void;
  hasHooks(event: string): boolean;
  /** Whether apps are still to be loaded: see `is_late` of a module's state. */
  isAwaited?(): boolean;
  /** Called for each request before its body is read. */
  arrived?(request: IncomingMessage): void;
  /**
   * Whether the caller that forwards the responses adds missing content types and warns about them.
   */
  readonly typesElsewhere?: boolean;
  /** Tokens of the server, for apps that require them. */
  readonly tokens?: Tokens | undefined;
  log: {
    info(format: string, ...values: unknown[]): void;
    warn(format: string, ...values: unknown[]): void;
    error(format: string, ...values: unknown[]): void;
    debug(format: string, ...values: unknown[]): void;
  };
}

/** Returns the environment of a service that a module runs, with the module's events and log. */
export function environmentOf(module: Module): HttpEnvironment {
  return {
    fire: (event, data, host) => module.fire_event(event, data, host),
    announce: (event, data, host) => module.announce_event(event, data, host),
    hasHooks: (event) => module.has_hooks(event),
    isAwaited: () => module.awaits_modules(),
    tokens: module.tokens,
    log: module.log,
  };
}
