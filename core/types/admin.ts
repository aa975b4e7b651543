/** What a module adds to the Admin API and the dashboard: what `module.provides("admin", ...)` takes. */
import type { HttpEvent } from "./exchange.ts";
import type { Server } from "./server.ts";

/** A value that a caller gives. */
export interface AdminField {
  readonly type: "string" | "number" | "boolean";
  /** For people, in OpenAPI and in what refuses a wrong value. */
  readonly describe: string;
  readonly required?: boolean;
  /** All that it can be. */
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

/** What an operation is called with. */
export interface AdminCall<F extends AdminFields = AdminFields> {
  readonly input: AdminInput<F>;
  /** Who asks, for the record of changes: `admin socket`, `token NAME`, `loopback uid N`. */
  readonly by: string;
  /** What the caller may. */
  readonly scopes: ReadonlySet<AdminScope>;
  /** It came through the admin socket, which only the server's own user and root can open: they may name files and programs. */
  readonly viaSocket: boolean;
  readonly server: Server;
  readonly event: HttpEvent;
  /** Aborted when the caller has gone, or when the module leaves and the time for that is up. */
  readonly signal: AbortSignal;
}

/** `read` looks, `admin` changes. */
export type AdminScope = "read" | "admin";

/** A JSON Schema, or the name of one of the shapes. */
export type AdminShape = string | Readonly<Record<string, unknown>>;

/** An operation of the Admin API: its route and its description come from it. */
export interface AdminOperation<F extends AdminFields = AdminFields> {
  /** Unique among all modules: snake case, begun with the name of yours. In OpenAPI its `operationId`. */
  readonly name: string;
  readonly method: "GET" | "POST" | "DELETE";
  /** Below `/admin/api`, and unique with its method; `{name}` stands for one segment, and is a field. */
  readonly path: string;
  readonly scope: AdminScope;
  /** One line. */
  readonly help: string;
  /** Fields that the path does not name are of the JSON body for POST, of the query for GET, DELETE and streams. */
  readonly input?: F;
  /** `stream`: the body is what `run` reads from `event.request.body_stream`, of any type and size. */
  readonly takes?: "stream";
  readonly answer: AdminShape;
  /** The answer is a Change, whose result is the status: 200, 409 when it was refused, 422 when it has failed. */
  readonly isChange?: boolean;
  /** The answer is no JSON: `run` gives all of it, as a handler does; the request's own headers are there for ranges and conditions. */
  readonly isRaw?: boolean;
  /** Answers a JSON value. An HttpError is answered with its status and message. */
  run(call: AdminCall<F>): unknown;
}

/**
 * A topic of `/admin/api/events`. Called when somebody begins to listen, with what tells all who do: any JSON value. The
 * function that it gives is called when nobody listens any more.
 */
export type AdminTopic = (tell: (value: unknown) => void) => () => void;

/**
 * Pages of the dashboard: files in a folder of the module, served to browsers as they are. The script is loaded with the
 * dashboard; it imports `addSection` and all else that pages are made of from `modhost/admin`.
 */
export interface AdminPages {
  /** `new URL("pages/", import.meta.url)`. */
  readonly folder: URL;
  /** Name of an ES module in the folder. */
  readonly script: string;
  /** Names of style sheets in the folder. */
  readonly styles?: readonly string[];
}

/** What `module.provides("admin", ...)` takes. It costs nothing while the module `http_admin` is not loaded. */
export interface AdminItem {
  readonly operations?: readonly AdminOperation[];
  /** By name: snake case, begun with the name of your module. */
  readonly topics?: Readonly<Record<string, AdminTopic>>;
  /** JSON Schemas by name, for answers that refer to them: `{ $ref: "#/components/schemas/NAME" }`. */
  readonly shapes?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly pages?: AdminPages;
}
