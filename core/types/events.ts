/** The events of the host and its bundled modules. */
import type { Socket } from "node:net";
import type { CertificatesChangedEvent } from "./certificate.ts";
import type { Change } from "./change.ts";
import type { HttpRequest, HttpResponse } from "./exchange.ts";
import type { ResponseHeaders } from "./handler_result.ts";

/** The events of the host and its bundled modules, with the data that their hooks receive. */
export interface HostEvents extends FiredEvents, AnnouncedEvents {}

/** Events that are fired: the hooks run one after another, and the first result wins. */
export interface FiredEvents {
  /** A response with a status of 400 or more is about to be sent; the result is its page. */
  "http-error": HttpErrorEvent;
  /** A folder without an index file is about to be shown; the result is the listing. */
  "directory-index": DirectoryIndexEvent;
  /**
   * A certificate authority requests an ACME challenge, on any host; the result is the text of the
   * response. Without a result the path is routed like any other.
   */
  "acme-challenge": AcmeChallengeEvent;
  /** A TLS connection is about to start; `true` takes it over. */
  "tls-connection": TlsConnectionEvent;
}

/** Events that are announced: every hook runs, and results are ignored. */
export interface AnnouncedEvents {
  /** A request has ended, complete or not. */
  "http-finished": HttpFinishedEvent;
  /** All modules are loaded and all ports open. */
  "server-started": object;
  /** The server is about to stop: `stop_delay` begins, during which everything is still served. */
  "server-leaving": object;
  /** The server still responds to open requests, but accepts no new connections. */
  "server-stopping": object;
  /** All requests have ended; modules are still loaded. */
  "server-stopped": object;
  /** Log files have been moved away: every writer of a log file must reopen it. */
  "logs-reopened": object;
  /** An instance of a module has been loaded, at the start or later. */
  "module-loaded": ModuleEvent;
  /** An instance of a module has been unloaded. */
  "module-unloaded": ModuleEvent;
  /** A new instance has replaced the previous one; the two events above are not announced. */
  "module-reloaded": ModuleEvent;
  /** A module that kept failing was quarantined; `module-unloaded` was announced before. */
  "module-quarantined": QuarantineEvent;
  /** A change of the server has ended, successfully or not, whoever requested it. */
  "server-changed": Change;
  /** A changed configuration is in force. */
  "config-changed": ConfigChangedEvent;
  /**
   * The server uses new certificates: the files or the configuration changed. Open connections are
   * not affected. A listener of your own passes the new certificates to clients that send no host
   * name with `setSecureContext(module.tls_options())`.
   */
  "certificates-changed": CertificatesChangedEvent;
}

/** An instance of a module: its name, and its host ("*" for the whole server). */
export interface ModuleEvent {
  readonly module: string;
  readonly host: string;
}

/** A module that was quarantined. */
export interface QuarantineEvent extends ModuleEvent {
  readonly reason: string;
  /** When the host tries the module again, in seconds since 1970. */
  readonly next_try: number;
}

/** `config-changed`: the names of the options whose values have changed. */
export interface ConfigChangedEvent {
  readonly options: readonly string[];
}

/** `acme-challenge`: a request for `/.well-known/acme-challenge/<token>` (RFC 8555, 8.3). */
export interface AcmeChallengeEvent {
  readonly token: string;
}

/** `tls-connection`: a connection from which nothing has been read. */
export interface TlsConnectionEvent {
  readonly socket: Socket;
  /** Lets the host serve the connection after all; unshift what you have read before. */
  serve(): void;
}

/**
 * `http-error`: the first hook that returns text or bytes makes the page; it may set
 * `response.headers`.
 */
export interface HttpErrorEvent {
  readonly code: number;
  /** Text that the client may read. */
  readonly message: string | undefined;
  /** The thrown value, for logs; it is never shown unless `http_errors_detailed` is set. */
  readonly error: unknown;
  /** Undefined if the request could not be parsed. */
  readonly request: HttpRequest | undefined;
  readonly response: { status_code: number; headers: ResponseHeaders };
}

/**
 * `directory-index`: the first hook that returns text makes the listing; it may set
 * `response.headers`.
 */
export interface DirectoryIndexEvent {
  /** Path of the request, ending in a slash. */
  readonly path: string;
  /** The folder on disk, links resolved. */
  readonly full_path: string;
  /**
   * The folder that the route serves. `full_path` is this folder or lies below it, and nothing
   * outside of it may be shown.
   */
  readonly root: string;
  /** Whether to show names that begin with a dot. */
  readonly hidden: boolean;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
}

/** `http-finished`: announced after each request, complete or not. */
export interface HttpFinishedEvent {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** The status that was sent; 0 if the client left before. */
  readonly status: number;
  /** Number of body bytes written. */
  readonly bytes: number;
  /** Number of body bytes read. */
  readonly received: number;
  /** Milliseconds from the parsed head to the end. */
  readonly duration: number;
  /** Milliseconds for which handlers blocked the event loop, each until its first await. */
  readonly busy: number;
  /** Whether the client received the whole response. */
  readonly complete: boolean;
  /** Name of the app whose handler responded. */
  readonly app: string | undefined;
  /** Name of its module. */
  readonly module: string | undefined;
  /**
   * Its route, with the whole path: `GET /shop/items/*`; `* /shop/*` for middleware. Undefined if
   * no route was called.
   */
  readonly route: string | undefined;
}
