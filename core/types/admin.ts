/**
 * Additions of a module to the Admin API and the dashboard: the item of
 * `module.provides("admin", ...)`.
 */
import type { HttpEvent } from "./exchange.ts";
import type { Server } from "./server.ts";

/** A value that a caller gives. */
export interface AdminField {
  readonly type: "string" | "number" | "boolean";
  /** One sentence for people: OpenAPI and the refusal of a wrong value show it. */
  readonly describe: string;
  readonly required?: boolean;
  /** All values that it can have. */
  readonly values?: readonly string[];
  /** Characters of a text at most; default 4,096. */
  readonly maxLength?: number;
}

/** Fields by name. */
export type AdminFields = Readonly<Record<string, AdminField>>;

type AdminValue<F extends AdminField> = F["type"] extends "string"
  ? string
  : F["type"] extends "number"
    ? number
    : boolean;

/** The values of fields, by name: they are of the declared types. */
export type AdminInput<F extends AdminFields> = {
  readonly [K in keyof F]: F[K] extends { required: true } ? AdminValue<F[K]> : AdminValue<F[K]> | undefined;
};

/** The argument of an operation. */
export interface AdminCall<F extends AdminFields = AdminFields> {
  readonly input: AdminInput<F>;
  /**
   * The caller, for the record of changes: `admin socket`, `token NAME`, `loopback uid N`.
   */
  readonly by: string;
  /** The scopes that the caller has. */
  readonly scopes: ReadonlySet<AdminScope>;
  /**
   * True for a call through the admin socket, which only the server's own user and root can open.
   * Such callers may name files and programs.
   */
  readonly viaSocket: boolean;
  readonly server: Server;
  readonly event: HttpEvent;
  /**
   * Aborted when the caller disconnects, or when the module is unloaded and the time that requests
   * have for it is over.
   */
  readonly signal: AbortSignal;
}

/** `read` only inspects; `admin` changes the server. */
export type AdminScope = "read" | "admin";

/** A JSON Schema, or the name of one of the shapes. */
export type AdminShape = string | Readonly<Record<string, unknown>>;

/** An operation of the Admin API: its route and its description come from it. */
export interface AdminOperation<F extends AdminFields = AdminFields> {
  /**
   * Unique among all modules: snake case, and it starts with the name of your module. OpenAPI shows
   * it as `operationId`.
   */
  readonly name: string;
  readonly method: "GET" | "POST" | "DELETE";
  /**
   * Below `/admin/api`, and unique with its method. `{name}` stands for one segment, and is a
   * field.
   */
  readonly path: string;
  readonly scope: AdminScope;
  /** Description in one line. */
  readonly help: string;
  /**
   * Fields that are not part of the path come from the JSON body for POST, and from the query for
   * GET, DELETE and streams.
   */
  readonly input?: F;
  /**
   * `stream`: `run` reads the body from `event.request.body_stream`; it can have any type and size.
   */
  readonly takes?: "stream";
  readonly response: AdminShape;
  /**
   * The response is a Change. Its result sets the status: 200 when done, 409 when refused, 422 when
   * failed.
   */
  readonly isChange?: boolean;
  /**
   * The response is not JSON: `run` returns a whole response, as a handler does, and reads the
   * request's own headers for ranges and conditions.
   */
  readonly isRaw?: boolean;
  /**
   * Returns the JSON value of the response. A thrown HttpError is sent with its status and message.
   */
  run(call: AdminCall<F>): unknown;
}

/**
 * A topic of `/admin/api/events`. The host calls it when the first client subscribes, with a
 * function that sends any JSON value to all subscribers. The function that it returns is called
 * when the last one has left.
 */
export type AdminTopic = (publish: (value: unknown) => void) => () => void;

/**
 * Pages of the dashboard: files in a folder of the module, served to browsers unchanged. The
 * dashboard loads the script; the script imports `addSection` and everything else that pages need
 * from `modhost/admin`.
 */
export interface AdminPages {
  /** The URL of the folder, usually `new URL("pages/", import.meta.url)`. */
  readonly folder: URL;
  /** Name of an ES module in the folder. */
  readonly script: string;
  /** Names of style sheets in the folder. */
  readonly styles?: readonly string[];
}

/**
 * The item of `module.provides("admin", ...)`. It costs nothing while no loaded module serves the
 * Admin API.
 */
export interface AdminItem {
  readonly operations?: readonly AdminOperation[];
  /** Topics by name: snake case, starting with the name of your module. */
  readonly topics?: Readonly<Record<string, AdminTopic>>;
  /** JSON Schemas by name, to which responses refer: `{ $ref: "#/components/schemas/NAME" }`. */
  readonly shapes?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly pages?: AdminPages;
}
