import type { IncomingMessage } from "node:http";
import type { DefaultHeaders, Module, Tokens } from "../types.ts";

/** What the HTTP service is told by its configuration; times in seconds, sizes in bytes. */
export interface HttpSettings {
  /** Largest buffered request body. */
  readonly maxContentSize: number;
  readonly maxHeaderSize: number;
  /** A request head must be complete within this time. */
  readonly headTimeout: number;
  /** Within each such time `progressBytes` must move, while the client is waited for. */
  readonly progressTimeout: number;
  readonly progressBytes: number;
  /** A connection without a request is closed after this time. */
  readonly idleTimeout: number;
  /** Concurrent streams of one HTTP/2 connection. */
  readonly maxStreams: number;
  /** Bytes that may wait for clients, of all answers together; beyond them, who takes nothing is cut. */
  readonly maxUnsent: number;
  /** Addresses and CIDR ranges whose forwarding headers are believed. */
  readonly trustedProxies: readonly string[];
  /** Read X-Forwarded-For and X-Forwarded-Proto (true), or the Forwarded header (false). */
  readonly legacyForwarded: boolean;
  /** Virtual hosts; empty: any Host is served. */
  readonly hosts: readonly string[];
  /** Serves requests for unknown hosts. */
  readonly defaultHost: string | undefined;
  readonly websocket: WebsocketLimits;
  /** Headers for answers of no app that lack them. */
  readonly defaultHeaders?: DefaultHeaders | undefined;
}

export interface WebsocketLimits {
  /** A client that is silent for as long after a ping is gone; 0: nobody is pinged. */
  readonly pingInterval: number;
  /** A client that does not agree to the end within this time is cut. */
  readonly closeTimeout: number;
  /** Largest message taken, where the app does not say otherwise. */
  readonly maxMessage: number;
  /** Memory that may wait for a client that reads slowly, before one more message cuts it. */
  readonly maxUnsent: number;
}

/** What the service needs of the host: its events, and a log. */
export interface HttpEnvironment {
  /** Fires an event to the hooks of a host, "*" for all; the first answer is returned. */
  fire(event: string, data: unknown, host: string): unknown;
  /** Tells every hook of a host; one that fails stops nothing. */
  announce(event: string, data: unknown, host: string): void;
  hasHooks(event: string): boolean;
  /** There are apps that come later: see `is_late` of a module's state. */
  isAwaited?(): boolean;
  /** Sees each request before anything is read of it. */
  arrived?(request: IncomingMessage): void;
  /** Whoever passes the answers on adds the content types that they lack, and warns of them. */
  readonly typesElsewhere?: boolean;
  /** Of the server, for apps that ask for them. */
  readonly tokens?: Tokens | undefined;
  log: {
    info(format: string, ...values: unknown[]): void;
    warn(format: string, ...values: unknown[]): void;
    error(format: string, ...values: unknown[]): void;
    debug(format: string, ...values: unknown[]): void;
  };
}

/** The events and the log of a module, for a service that it runs. */
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
