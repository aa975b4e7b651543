/**
 * Every error that the host itself raises: one table of code, status and message, and the class
 * that carries them. `docs/reference/errors.md` is checked against this table in both directions.
 */
import { inspect } from "node:util";
import { clipped } from "./clipped.ts";

export interface ErrorEntry {
  /** HTTP status if the error reaches a client; default 500. */
  readonly status?: number;
  /** Whether the client may read the message. */
  readonly expose?: boolean;
  /** `{name}` is replaced by the detail of that name. */
  readonly message: string;
}

/** Every error that the host raises, by code: the message, and what an HTTP client gets. */
export const errorTable = {
  // Configuration
  CONFIG_NOT_FOUND: { message: "There is no config file {path}: name an existing file with --config" },
  CONFIG_UNREADABLE: { message: "The config file {path} cannot be read: {reason}" },
  CONFIG_INVALID: { message: "The configuration is not valid:\n{problems}" },
  MODULES_LOCK_INVALID: { message: "The file {path} is not valid: {reason}" },
  CONFIG_FIXED: {
    message:
      "This server was started without a config file, so there is nothing to reload: start it with --config, or restart it",
  },
  CONFIG_NOT_EDITABLE: { message: "The configuration cannot be edited here: {reason}" },
  CONFIG_CHANGED: {
    message: "The config file {path} has changed since it was read: read it again and repeat the edit",
  },
  CONFIG_NOT_WRITTEN: { message: "The config file {path} cannot be written, so nothing has changed: {reason}" },
  CONFIG_NOT_APPLIED: { message: "The configuration has not changed, because {step} failed: {reason}" },
  // Modules
  MODULE_NOT_FOUND: {
    message: "No module {name} in {searched}: check the spelling{meant}, or add its folder to plugin_paths",
  },
  MODULE_NOT_FETCHED: {
    message:
      "The module {name} {version} is in modules.lock, but not in {folder}: fetch what the file names with modhost add --locked",
  },
  MODULE_NOT_LOADED: { message: "The module {name} is not loaded" },
  MODULE_UNKNOWN: { message: "The module {name} has never been loaded here. Known modules: {known}" },
  MODULE_ALREADY_LOADED: { message: "The module {name} is already loaded" },
  MODULE_INVALID: { message: "{file} is not a module: {reason}" },
  MODULE_DISABLED: { message: "The module {name} is listed in modules_disabled, so no module can depend on it" },
  MODULE_CYCLE: {
    message: "Modules depend on each other in a cycle: {cycle}. Move what they share into another module",
  },
  MODULE_FAILED: { message: "The module {name} failed while {step}: {reason}" },
  PACKAGE_MISSING: {
    message:
      "The module {name} needs the package {package}, which is not installed: npm install --include=optional installs it",
  },
  MODULE_DEPENDENCY: { message: "The module {name} needs {dependency}, which is not loaded: {reason}" },
  MODULE_QUARANTINED: {
    message: "The module {name} is quarantined because it kept failing: fix it, then reload it",
  },
  PROCESS_END_REFUSED: {
    message:
      "{act} is refused to the module {name}, because it would end all modules: throw an error to fail alone; module.stop_server() stops the server in order, as modhost stop does",
  },
  PROCESS_MOVE_REFUSED: {
    message:
      "{act} is refused to the module {name}, because it would change the working folder of all modules: use absolute paths instead",
  },
  ISOLATED: { message: "An isolated module cannot {what}: {remedy}" },
  SANDBOXED: { message: "A sandboxed module cannot {what}: {remedy}" },
  ISOLATED_ENDED: { status: 503, message: "The module {name} is not running: {reason}" },
  LIMIT_REACHED: { status: 503, message: "The module {name} {what}: modules.{name}.limits.{limit} allows {most}" },
  SANDBOX_UNAVAILABLE: { message: "A sandboxed module cannot run here: {reason}" },
  PERMISSION_DENIED: { message: "The module {name} may not {act}: to allow it, add {grant} to the configuration" },
  MODULE_UNLOADED: { message: "The module {name} has been unloaded, so its module object can no longer be used" },
  UNKNOWN_HOST: { message: "There is no host {host} in the option hosts" },
  OPTION_INVALID: { message: "Option {name} is {value}, but {allowed}" },
  OPTION_MISSING: {
    message:
      "The module {name} needs the option {option}, which is not set: {describe} Set it in {place}, or as {variable}",
  },
  // Changes of a running host
  CHANGE_REFUSED: { message: "{what} is refused: {reason}" },
  NOT_HANDED_OVER: { message: "The takeover failed, and this server keeps serving: {reason}" },
  // Tokens
  TOKEN_INVALID: { message: "The {field} of a token cannot be {value}: it must be {allowed}" },
  TOKEN_EXISTS: { message: "There is a token {name}: revoke it first, or choose another name" },
  TOKEN_SCOPE_TAKEN: {
    message:
      "The kind of token scopes {kind} is already declared by {by}: choose another kind, or unload that module first",
  },
  TOKEN_UNKNOWN: { message: "There is no token {name}: modhost token list shows all" },
  TOKENS_UNREADABLE: { message: "The token file {path} cannot be read: {reason}" },
  TOKENS_UNWRITABLE: { status: 507, expose: true, message: "The token file {path} cannot be written: {reason}" },
  // Routes
  PROVIDER_INVALID: {
    message: 'App {app}: provides("http") takes { route: { "GET /": handler } }, or middleware: {reason}',
  },
  ROUTE_INVALID: { message: "App {app}: {faults}" },
  ADMIN_INVALID: { message: "An addition to the Admin API is not valid: {faults}" },
  METRICS_INVALID: { message: "The declaration of the metrics is not valid: {faults}" },
  MIDDLEWARE_INVALID: {
    message:
      "App {app}: middleware is a Koa middleware function, a list of them, a Koa application, or a router of @koa/router, not {kind}",
  },
  HTTP_MIDDLEWARE_INVALID: {
    message: 'Module {module}: provides("http-middleware") takes { middleware, order, apps }: {reason}',
  },
  // Listeners
  PORT_TAKEN: {
    message:
      "Port {port} on {address} is taken by another program: stop it, or set the option {option} to another port, for example {example}",
  },
  PORT_FORBIDDEN: {
    message: "Port {port} on {address} cannot be opened by this user: set the option {option} to a port above 1023",
  },
  PORT_UNAVAILABLE: { message: "Port {port} on {address} cannot be opened ({reason}): check the option {option}" },
  ENDPOINT_UNAVAILABLE: { message: "Cannot listen on {place}: {reason}" },
  SERVICE_MISSING: {
    message: "No loaded module provides the service {service}: enable one that does, or let a module depend on it",
  },
  TLS_INVALID: { message: "The certificate for {host} cannot be used: {reason}" },
  // Requests
  RESULT_INVALID: { message: "{route} returned {what}, which is not a valid result: {remedy}" },
  HEADER_INVALID: { message: "The response header {name} cannot be sent: {reason}" },
  BODY_TOO_LARGE: { status: 413, expose: true, message: "The request body is larger than the {limit} bytes allowed" },
  BODY_ENCODED: {
    status: 415,
    expose: true,
    message: "The content coding {coding} is not supported: send the body without Content-Encoding",
  },
  BODY_TIMEOUT: { status: 408, expose: true, message: "The request body did not arrive fast enough" },
  BODY_NOT_JSON: { status: 400, expose: true, message: "The request body is not JSON: {reason}" },
  BODY_ABORTED: { status: 400, message: "The client disconnected before its request body was complete" },
  WEBSOCKET_INVALID: { message: "The websocket of request {id} cannot be accepted: {reason}" },
  WEBSOCKET_CLOSED: { message: "Nothing can be sent on this websocket: {reason}" },
  STREAM_CLOSED: { message: "Nothing can be sent on this event stream: {reason}" },
  MULTIPART_INVALID: { status: 400, expose: true, message: "The multipart body cannot be read: {reason}" },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorTable;

const brand = Symbol.for("modhost.error");

/**
 * An error of the host. `code` is stable and documented; `status` and `expose` determine what an
 * HTTP client gets; `details` contains the values named in the message.
 */
export class ModhostError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly expose: boolean;
  readonly details: Readonly<Record<string, unknown>>;
  readonly [brand] = true;

  constructor(code: ErrorCode, details: Record<string, unknown> = {}, options?: ErrorOptions) {
    const entry: ErrorEntry = errorTable[code];
    super(
      entry.message.replace(/\{(\w+)\}/g, (whole, key) => (key in details ? String(details[key]) : whole)),
      options,
    );
    this.name = "ModhostError";
    this.code = code;
    this.status = entry.status ?? 500;
    this.expose = entry.expose ?? false;
    this.details = details;
  }

  /** Returns true for an error made by any copy of this package in the process. */
  static is(value: unknown): value is ModhostError {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
  }
}

/**
 * An error that a handler throws or rejects with, to respond with a status of 400 to 599. With
 * `expose` (the default below 500) the error page shows the message; otherwise it is only logged.
 */
export class HttpError extends Error {
  readonly code: number;
  readonly expose: boolean;

  constructor(code: number, message = "", options: ErrorOptions & { expose?: boolean } = {}) {
    if (!Number.isInteger(code) || code < 400 || code > 599) {
      throw new RangeError(`HttpError takes a status from 400 to 599, not ${code}`);
    }
    super(message, options);
    this.name = "HttpError";
    this.code = code;
    this.expose = options.expose ?? code < 500;
  }
}

type Fields = Readonly<Record<string, unknown>>;
/** Number of nested causes that are checked. */
const MAX_CAUSES = 5;

/**
 * Returns the thrown value if its fields can be read, else an Error that stands for it. Reading can
 * throw: the value may be a revoked proxy or have getters that throw.
 */
export function readableThrown(thrown: unknown, causes = MAX_CAUSES): unknown {
  if ((typeof thrown !== "object" && typeof thrown !== "function") || thrown === null) return thrown;
  try {
    return readable(thrown, causes);
  } catch {
    // With Node.js's own stacks it may be readable.
    return withPlainStacks(() => {
      try {
        return readable(thrown, causes);
      } catch {
        return shownAs(thrown);
      }
    });
  }
}

function readable(thrown: object, causes: number): unknown {
  const { stack, message, cause, code, status, statusCode, expose, headers, name } = thrown as Fields;
  void [code, status, statusCode, expose, headers, name, ModhostError.is(thrown), String(thrown)];
  if (!(thrown instanceof Error)) return thrown;
  const isPlain = [stack, message].every((one) => one === undefined || typeof one === "string");
  return isPlain && (causes === 0 || readableThrown(cause, causes - 1) === cause) ? thrown : shownAs(thrown);
}

/**
 * Runs code with Node.js's own stacks: a module may have set an `Error.prepareStackTrace` that
 * throws or returns no text.
 */
export function withPlainStacks<R>(read: () => R): R {
  const { prepareStackTrace } = Error;
  Reflect.set(Error, "prepareStackTrace", undefined);
  try {
    return read();
  } finally {
    Reflect.set(Error, "prepareStackTrace", prepareStackTrace);
  }
}

/** Returns an Error that replaces the value; its own stack would name only this file. */
function shownAs(thrown: object): Error {
  let text = UNREADABLE;
  try {
    text = inspect(thrown, { customInspect: false, depth: 1 });
  } catch {} // The default text says so.
  return Object.assign(new Error(text), { stack: `Error: ${text}` });
}

const UNREADABLE = "a thrown value cannot be read";

/**
 * Returns the message of any thrown value, for logs and error details; the fields of an object
 * without text.
 */
export function reasonOf(thrown: unknown): string {
  try {
    const text = String(thrown instanceof Error ? thrown.message : thrown);
    const isObject = typeof thrown === "object" && !(thrown instanceof Error) && /^\[object .*\]$/.test(text);
    return clipped(isObject ? inspect(thrown, { customInspect: false, depth: 1, breakLength: Infinity }) : text);
  } catch {
    return UNREADABLE;
  }
}

/**
 * Returns an OPTION_INVALID error for a value that a module does not accept. `allowed` ends the
 * sentence "Option NAME is VALUE, but".
 */
export function invalidOption(name: string, value: unknown, allowed: string, options: ErrorOptions = {}): ModhostError {
  const shown = value === undefined ? "not set" : (JSON.stringify(value) ?? String(value));
  return new ModhostError("OPTION_INVALID", { name, value: shown, allowed }, options);
}
