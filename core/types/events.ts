/** The events of the host and its bundled modules. */
import type { Socket } from "node:net";
import type { ResponseHeaders } from "./answer.ts";
import type { CertificatesChangedEvent } from "./certificate.ts";
import type { Change } from "./change.ts";
import type { HttpRequest, HttpResponse } from "./exchange.ts";

/** The events of the host and its bundled modules, with what their hooks are given. */
export interface HostEvents extends FiredEvents, AnnouncedEvents {}

/** Asked one hook after the other; the first answer is the result. */
export interface FiredEvents {
  /** An answer of 400 or more is due; the answer is its page. */
  "http-error": HttpErrorEvent;
  /** A folder without index file is to be shown; the answer is the listing. */
  "directory-index": DirectoryIndexEvent;
  /** A certificate authority asks for a proof, whatever the host; the answer is its text. Without one the path is routed as any. */
  "acme-challenge": AcmeChallengeEvent;
  /** A connection is about to begin with TLS; `true` takes it over. */
  "tls-connection": TlsConnectionEvent;
  /** A token is to be made; the answer says what its scope must be, where it names something that is not there. */
  "token-scope": TokenScopeEvent;
}

/** Told to every hook; answers are ignored. */
export interface AnnouncedEvents {
  /** A request is over, complete or not. */
  "http-finished": HttpFinishedEvent;
  /** All modules are loaded and all ports open. */
  "server-started": object;
  /** The server is to stop: `stop_delay` begins, for which everything is still served. */
  "server-leaving": object;
  /** Requests are still answered, but no new connections are taken. */
  "server-stopping": object;
  /** Requests are over; modules are still loaded. */
  "server-stopped": object;
  /** Files of logs have been moved away: whoever writes one opens it again. */
  "logs-reopened": object;
  /** An instance of a module has been loaded, at the start or later. */
  "module-loaded": ModuleEvent;
  /** An instance of a module is gone. */
  "module-unloaded": ModuleEvent;
  /** A new instance has taken the place of a former one; the two events above do not come. */
  "module-reloaded": ModuleEvent;
  /** A module that kept failing was taken out; `module-unloaded` has come before. */
  "module-quarantined": QuarantineEvent;
  /** A change of the server is over, done or not: whoever asked for it, by whatever way. */
  "server-changed": Change;
  /** A changed configuration is in force. */
  "config-changed": ConfigChangedEvent;
  /**
   * Other certificates are served: new ones in the same files, or of another configuration. Connections that are open go
   * on. A listener of your own gives them to clients that name no host by `setSecureContext(module.tls_options())`.
   */
  "certificates-changed": CertificatesChangedEvent;
}

/** An instance of a module: its name, and its host ("*" for the whole server). */
export interface ModuleEvent {
  readonly module: string;
  readonly host: string;
}

/** A module that was taken out. */
export interface QuarantineEvent extends ModuleEvent {
  readonly reason: string;
  /** When it is tried again, seconds since 1970. */
  readonly next_try: number;
}

/** `config-changed`: the names of the options that have another value now. */
export interface ConfigChangedEvent {
  readonly options: readonly string[];
}

/** `acme-challenge`: a request for `/.well-known/acme-challenge/<token>` (RFC 8555, 8.3). */
export interface AcmeChallengeEvent {
  readonly token: string;
}

/** `token-scope`: one of the scopes of the new token. */
export interface TokenScopeEvent {
  /** As it is written, such as `rpc:pin:read`; it may be no scope at all. */
  readonly scope: string;
}

/** `tls-connection`: a connection of which nothing was read. */
export interface TlsConnectionEvent {
  readonly socket: Socket;
  /** Serves it as any other; what was read of it is unshifted before. */
  serve(): void;
}

/** `http-error`: the first hook that returns text (or bytes) makes the page; it may set `response.headers`. */
export interface HttpErrorEvent {
  readonly code: number;
  /** Text that the client may read. */
  readonly message: string | undefined;
  /** What was thrown, for logs; never shown unless `http_errors_detailed` is set. */
  readonly error: unknown;
  /** Missing when the request could not be parsed. */
  readonly request: HttpRequest | undefined;
  readonly response: { status_code: number; headers: ResponseHeaders };
}

/** `directory-index`: the first hook that returns text makes the listing; it may set `response.headers`. */
export interface DirectoryIndexEvent {
  /** Path of the request, ending in a slash. */
  readonly path: string;
  /** The folder on disk, links resolved. */
  readonly full_path: string;
  /** The folder that the route serves: `full_path` is it or lies below, and nothing outside of it is shown. */
  readonly root: string;
  /** Show names that begin with a dot. */
  readonly hidden: boolean;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
}

/** `http-finished`: after each request, complete or not. */
export interface HttpFinishedEvent {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** Status on the wire; 0 when the client left before one was sent. */
  readonly status: number;
  /** Body bytes written. */
  readonly bytes: number;
  /** Body bytes read. */
  readonly received: number;
  /** From the parsed head to the end, milliseconds. */
  readonly duration: number;
  /** Milliseconds that handlers have kept the event loop, each up to its first await. */
  readonly busy: number;
  /** The client received everything. */
  readonly complete: boolean;
  /** Name of the app whose handler answered. */
  readonly app: string | undefined;
  /** Name of its module. */
  readonly module: string | undefined;
  /** Its route, with the whole path: `GET /shop/items/*`; `* /shop/*` for middleware. Undefined where none was asked. */
  readonly route: string | undefined;
}
