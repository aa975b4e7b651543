/**
 * Everything that a module author sees, and no logic. Names follow the specification's spelling (snake_case on the
 * module, event, request and response objects); "spec n" is part n of the HTTP module framework document.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import type { TlsOptions } from "node:tls";
import type { EventHandler } from "./events.ts";

export type { EventHandler };

// ------------------------------------------------------------------------------------------------ the module file

/** A module file's default export: runs once per load. What it returns is what `module.depends(name)` gives others. */
export type ModuleFunction = (module: Module) => unknown;

/** What a module file may export. Only the default export is required. */
export interface ModuleDefinition {
  /** Runs at load; may be async. Its value is what dependents get from `module.depends`. */
  readonly load: ModuleFunction;
  /** Options that this module reads, checked before anything is loaded. */
  readonly options?: OptionDeclarations;
  /** Modules to be loaded before this one; spares the second attempt that `module.depends` may cost. */
  readonly depends?: readonly string[];
  /** True: loaded once for the whole server instead of once for each of `hosts`. */
  readonly global?: boolean;
}

// ------------------------------------------------------------------------------------------------------- options

/** The kinds of option values. `period` is seconds, or text such as "90s", "10m", "2h", "1d". */
export type OptionType =
  | "string"
  | "number"
  | "integer"
  | "boolean"
  | "period"
  | "path"
  | "enum"
  | "strings"
  | "ports"
  | "object"
  | "any";

/** One option, declared once: parsing, checks, the JSON Schema, the sample config and the reference come from it. */
export interface OptionDeclaration {
  readonly type: OptionType;
  /** Value when the option is not set; left out means "not set" (getters give undefined). */
  readonly default?: unknown;
  /** Inclusive bounds of numbers, integers and periods (seconds). */
  readonly min?: number;
  readonly max?: number;
  /** Allowed values of an enum. */
  readonly values?: readonly string[];
  /** Unit shown in the reference: "bytes", "seconds". */
  readonly unit?: string;
  /** A value for the commented sample, where there is no default that shows the form. */
  readonly example?: unknown;
  /** One sentence for operators. */
  readonly describe: string;
  /** May be set inside an entry of `hosts`, too. Default true. */
  readonly per_host?: boolean;
  /** Of an object whose values are objects themselves: their fields. A field without default must be set. */
  readonly entries?: OptionDeclarations;
}

export type OptionDeclarations = Readonly<Record<string, OptionDeclaration>>;

// ----------------------------------------------------------------------------------------------- the module object

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Writes to the host's log under the module's name: `module.log.info("sent %d", n)` or `module.log("info", ...)`. */
export type ModuleLog = ((level: LogLevel, format: string, ...values: unknown[]) => void) &
  Record<LogLevel, (format: string, ...values: unknown[]) => void>;

export interface Timer {
  /** The timer never fires again. */
  stop(): void;
  /** The next firing comes `delay` seconds from now. */
  reschedule(delay: number): void;
}

/** A port service given to `module.provides("net", ...)`: the host opens its ports and hands over each connection. */
export interface NetProvider {
  /** Names the options: `<name>_ports` and `<name>_interfaces`. */
  readonly name: string;
  readonly default_ports?: readonly number[];
  /** Addresses to listen on when `<name>_interfaces` is not set; "*" is every address, IPv6 and IPv4. */
  readonly default_interfaces?: readonly string[];
  /** Shown when the program prints its addresses: "http" or "https" make the entry a URL. */
  readonly scheme?: string;
  /** The peer may close its sending side and still read. */
  readonly half_open?: boolean;
  /** Owns the connection from here on. */
  onconnect(socket: Socket): void;
}

/** An address that the host listens on. */
export interface ListeningPort {
  readonly service: string;
  readonly scheme: string | undefined;
  readonly address: string;
  readonly port: number;
}

export interface Module {
  /** The module's name less one leading `mod_`: `http_hello` for `mod_http_hello.ts`. */
  readonly name: string;
  /** The host that this instance serves: a name from `hosts`, or "*" for the whole server. */
  readonly host: string;
  /** While loading: true on a reload, false on a first load; undefined afterwards. */
  readonly reloading: boolean | undefined;
  readonly log: ModuleLog;

  /** Functions of the life cycle; assign them. All may be async. */
  load: (() => unknown) | undefined;
  /** The server has opened its ports (at once, when it had before this load). */
  ready: (() => unknown) | undefined;
  /** Before a reload: the value returned here is handed to `restore` of the new instance. */
  save: (() => unknown) | undefined;
  restore: ((saved: unknown) => unknown) | undefined;
  /** After the last request in flight; what was added through this object is removed without help. */
  unload: (() => unknown) | undefined;
  /** Global modules only: called for each of `hosts` with a module object of that host. */
  add_host: ((module: Module) => unknown) | undefined;

  /** Loads another module if need be and gives what its function returned. Spec 2. */
  depends<T = unknown>(name: string): T;
  /** Declares an item of a kind under this module. `"http"` takes an HttpProvider, `"net"` a NetProvider. Spec 2. */
  provides(kind: "http", provider: HttpProvider): void;
  provides(kind: "net", provider: NetProvider): void;
  provides(kind: string, item: object): void;
  /** The folder of the module's file. Spec 4. */
  get_directory(): string;
  /** The bytes of a file beside the module's file. */
  load_resource(path: string): Promise<Buffer>;
  /** From now on this instance belongs to no single host. */
  set_global(): void;

  /** Adds an item of a kind; receivers of that kind are told. */
  add_item(kind: string, item: object): void;
  /** Calls `added` for every item of a kind, those already there first; `removed` may return a promise to wait for. */
  handle_items(kind: string, added: (item: OwnedItem) => void, removed: (item: OwnedItem) => unknown): void;

  /** Higher priority first (default 0); the first answer other than undefined or null ends the event. */
  hook<E extends keyof HostEvents>(event: E, handler: (data: HostEvents[E]) => unknown, priority?: number): void;
  hook(event: string, handler: EventHandler, priority?: number): void;
  /** A module of the whole server may fire an event for one of `hosts`; the others hear nothing of it then. */
  fire_event(event: string, data?: unknown, host?: string): unknown;
  /** Tells every hook of an event, whatever the others answer; one that fails is logged and stops nothing. */
  announce_event(event: string, data?: unknown, host?: string): void;
  /** True when somebody listens. */
  has_hooks(event: string): boolean;

  /** Calls `run(now, ...values)` after `delay` seconds; a returned number is the delay of the next call. */
  add_timer<A extends unknown[]>(
    delay: number,
    run: (now: number, ...values: A) => number | void | undefined | Promise<number | void | undefined>,
    ...values: A
  ): Timer;
  /** Records anything else to be undone at unload: `release` is called once. */
  on_release(label: string, release: () => unknown): void;

  /** A table shared by path between modules: "name", "/host/module/name" or `*` as host for the whole server. */
  shared(path?: string): Record<string, unknown>;
  /** Shown by `modhost modules`. */
  set_status(level: "info" | "warn" | "error", text: string): void;

  /** An option as declared, the host's own value before the server's. Undefined when not set and without default. */
  get_option<T = unknown>(name: string, fallback?: T): T | undefined;
  get_option_string(name: string, fallback?: string): string | undefined;
  get_option_number(name: string, fallback?: number, min?: number, max?: number): number | undefined;
  get_option_integer(name: string, fallback?: number, min?: number, max?: number): number | undefined;
  get_option_boolean(name: string, fallback?: boolean): boolean | undefined;
  /** Seconds; accepts "90s", "10m", "2h", "1d". */
  get_option_period(name: string, fallback?: number | string, min?: number, max?: number): number | undefined;
  get_option_enum<T extends string>(name: string, values: readonly T[], fallback?: T): T | undefined;
  /** A list of strings; a single value becomes a list. */
  get_option_array(name: string, fallback?: readonly string[]): string[] | undefined;
  get_option_set(name: string, fallback?: readonly string[]): Set<string> | undefined;
  /** Set of the server joined with the set of this host. */
  get_option_inherited_set(name: string, fallback?: readonly string[]): Set<string> | undefined;
  get_option_object(name: string, fallback?: Record<string, unknown>): Record<string, unknown> | undefined;
  /** An absolute path; a relative one counts from the config file's folder, a relative fallback from the module's. */
  get_option_path(name: string, fallback?: string): string | undefined;

  /** The URL of an app of this host, with a trailing slash where the app has one; see `http_external_url`. */
  http_url(app?: string, default_path?: string): string;
  /** The folder in which this server keeps its data. */
  data_path(): string;
  /** Certificates of the server: what a TLS listener needs, kept current. */
  tls_options(): TlsOptions & { SNICallback: NonNullable<TlsOptions["SNICallback"]> };
  /** Host names of the option `hosts`; empty when any host is served. */
  hosts(): readonly string[];
  /** Addresses that the host listens on now. */
  listening(): readonly ListeningPort[];
  /** State of every module of the server. */
  modules(): readonly ModuleState[];
}

/** An item as receivers of `handle_items` see it. */
export interface OwnedItem<T = unknown> {
  readonly item: T;
  /** The module that added it. */
  readonly owner: Module;
}

export interface ModuleState {
  readonly name: string;
  readonly host: string;
  readonly status: "loading" | "loaded" | "failed" | "unloading";
  readonly file: string | undefined;
  /** From `set_status`, or the failure. */
  readonly note: string | undefined;
  readonly depends: readonly string[];
  /** What it has added, by kind: hooks, items, timers, ... */
  readonly holds: Readonly<Record<string, number>>;
}

// ---------------------------------------------------------------------------------------------- the HTTP provider

/** `METHOD`, `METHOD /path` or `METHOD /path/*` (spec 2). */
export type RouteKey = string;

/**
 * Answers a request (spec 4). `path` is the decoded part of the path that the wildcard stands for, without a leading
 * slash; undefined on a route without wildcard.
 */
export type Handler = (event: HttpEvent, path: string) => HandlerResult | void | Promise<HandlerResult | void>;

/**
 * string: the body. number: the status, with the error page from 400 on. true: `response.send` comes later.
 * undefined or null: the next matching handler. false: 200 and nothing. Bytes, streams and async iterables: the body.
 */
export type HandlerResult =
  | string
  | number
  | boolean
  | null
  | undefined
  | Uint8Array
  | Readable
  | ReadableStream
  | AsyncIterable<string | Uint8Array>
  | ResponseFields;

/** An answer as an object: `headers` are merged into the response, these other fields are copied onto it. */
export interface ResponseFields {
  status_code?: number;
  /** A reason phrase of its own, for HTTP/1. */
  status?: string;
  headers?: ResponseHeaders;
  body?: string | Uint8Array | Readable | ReadableStream | AsyncIterable<string | Uint8Array>;
  trailers?: ResponseHeaders | (() => ResponseHeaders);
}

export interface HttpProvider {
  /** Route key to handler; a value that is not a function is answered as if a handler had returned it. */
  readonly route: Readonly<Record<RouteKey, Handler | HandlerResult>>;
  /** Overrides the app name (discouraged). */
  readonly name?: string;
  /** Replaces `/<app-name>`; the option `http_paths` goes before it. */
  readonly default_path?: string;
  /** Handlers are called before the body is read and take it from `request.body_stream`. */
  readonly streaming_uploads?: boolean;
  /** Priority among routes of other apps that match equally well. Default 0. */
  readonly priority?: number;
  readonly cors?: CorsSettings;
}

export interface CorsSettings {
  readonly enabled?: boolean;
  readonly credentials?: boolean;
  /** Origins that may read answers; "*" is any. */
  readonly origins?: readonly string[] | "*";
  /** Request headers allowed beyond Content-Type (true) or taken away (false). */
  readonly headers?: Readonly<Record<string, boolean>>;
}

// ---------------------------------------------------------------------------------------------------- the event

export interface HttpEvent {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
}

/** Lower-case names with `_` for `-`; repeated fields joined with ", " (cookies with "; "). */
export type RequestHeaders = Readonly<Record<string, string | undefined>>;

/** Names are written with `-` for `_`; a list is one field line per value. */
export type ResponseHeaders = Record<string, string | number | readonly string[] | undefined>;

export interface HttpUrl {
  /** Decoded path, app base included; the same as `request.path`. */
  readonly path: string;
  /** The path as it was sent. */
  readonly raw_path: string;
  /** What follows the first `?`; undefined when absent or empty. */
  readonly query: string | undefined;
  /** Of an absolute request target only. */
  readonly host: string | undefined;
  readonly scheme: string | undefined;
}

export interface HttpRequest {
  readonly headers: RequestHeaders;
  readonly method: string;
  readonly path: string;
  readonly url: HttpUrl;
  /** The raw body as UTF-8 text, "" when none was sent. */
  readonly body: string;
  readonly body_bytes: Buffer;
  /** With `streaming_uploads`: the body as it arrives, for one reader. Otherwise the buffered body, once. */
  readonly body_stream: AsyncIterable<Buffer>;
  /** The parts of a multipart body, one after the other, read as they arrive; nothing touches the disk. */
  parts(limits?: MultipartLimits): AsyncIterable<MultipartPart>;
  readonly conn: Connection;
  /** True when the client's connection is encrypted (as a trusted proxy tells, where there is one). */
  readonly secure: boolean;
  /** The client's address; behind trusted proxies the one they report. */
  readonly ip: string;
  /** Short and unique in this process; also in the log. */
  readonly id: string;
  readonly httpversion: string;
  /** The virtual host that serves the request; "*" when `hosts` is not set. */
  readonly host: string;
  /** Aborted when the client goes away before the answer is complete, or when its module leaves and the time for that is up. */
  readonly signal: AbortSignal;
  /** Node's own object. */
  readonly raw: IncomingMessage | Http2ServerRequest;
}

export interface MultipartLimits {
  /** Bytes of one part's body; default: no limit beyond the request's. */
  readonly part_bytes?: number;
  /** Number of parts; default 1,000. */
  readonly parts?: number;
  /** Bytes of one part's header; default 16 KiB. */
  readonly header_bytes?: number;
}

export interface MultipartPart {
  /** Field name, from Content-Disposition. */
  readonly name: string | undefined;
  /** File name as it was sent (backslashes and folders included). */
  readonly filename: string | undefined;
  readonly headers: RequestHeaders;
  /** The part's bytes; skipped automatically when the next part is asked for. */
  readonly body: AsyncIterable<Buffer>;
  text(): Promise<string>;
  bytes(): Promise<Buffer>;
}

export interface Connection {
  ip(): string;
  clientport(): number;
  serverport(): number;
  ssl(): boolean;
  /** Ends the connection at once. */
  close(): void;
  readonly socket: Socket;
}

export interface HttpResponse {
  /** Default 200. */
  status_code: number;
  headers: ResponseHeaders;
  body: ResponseFields["body"] | undefined;
  /** Sent after the body and announced by the Trailer header. A function is called at the end. */
  trailers: ResponseHeaders | (() => ResponseHeaders) | undefined;
  /** Names announced in the Trailer header when `trailers` is a function. */
  trailer_names: readonly string[] | undefined;
  /** Called once: the answer is complete, or the client went away first. */
  on_destroy: (() => void) | undefined;
  readonly finished: boolean;
  readonly headers_sent: boolean;
  readonly is_head_request: boolean;
  /** Sends the answer; `body` replaces `response.body`. A second call does nothing. Returns true. */
  send(body?: ResponseFields["body"] | undefined): true;
  /** Sends a file (with ranges, when a path is given), an open file handle or a readable stream. Returns true. */
  send_file(source: string | Readable | { fd: number; createReadStream(): Readable }): true;
  readonly request: HttpRequest;
  readonly raw: ServerResponse | Http2ServerResponse;
}

// ------------------------------------------------------------------------------------------- events of the HTTP host

/** The events of the host and its bundled modules, with what their hooks are given. */
export interface HostEvents {
  /** The first answer is the page. */
  "http-error": HttpErrorEvent;
  /** The first answer is the listing. */
  "directory-index": DirectoryIndexEvent;
  /** Announced: answers are ignored. So are those of all below. */
  "http-finished": HttpFinishedEvent;
  "server-started": object;
  /** Requests are still answered, but no new connections are taken. */
  "server-stopping": object;
  "server-stopped": object;
  "module-loaded": ModuleEvent;
  "module-unloaded": ModuleEvent;
  "module-reloaded": ModuleEvent;
}

export interface ModuleEvent {
  readonly module: string;
  readonly host: string;
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
  /** From the parsed head to the end, milliseconds. */
  readonly duration: number;
  /** The client received everything. */
  readonly complete: boolean;
  /** Name of the app whose handler answered. */
  readonly app: string | undefined;
}

// ------------------------------------------------------------------------------------------------------ static files

/** What `module.depends<HttpFiles>("http_files")` gives. */
export interface HttpFiles {
  /** A handler for exact and wildcard routes of any method; conditions and ranges are those of GET and HEAD. Spec 4. */
  serve(options: string | ServeOptions): Handler;
}

export interface ServeOptions {
  /** Folder or file to serve. */
  readonly path: string;
  /** List folders without index file; the page comes from the event `directory-index`. Default false. */
  readonly directory_index?: boolean;
  /** Names tried as index of a folder. Default index.html, index.htm. */
  readonly index_files?: readonly string[];
  /** Serve and list names that begin with a dot. Default false. */
  readonly hidden?: boolean;
  /** Extension to Content-Type, before the common table. */
  readonly mime_map?: Readonly<Record<string, string>>;
  /** Seconds for which clients may keep files unasked; without it no Cache-Control is sent. */
  readonly max_age?: number;
}
