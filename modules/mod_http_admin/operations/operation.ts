/** What an operation of the Admin API declares: routes, OpenAPI, the page of the API and commands come from it. */

import type { Change, HttpEvent, Module, Server } from "../../../core/types.ts";
import type { Streams } from "../events.ts";

/** A value that a caller gives. */
export interface Field {
  readonly type: "string" | "number" | "boolean";
  readonly describe: string;
  readonly required?: boolean;
  readonly values?: readonly string[];
}

export type Fields = Readonly<Record<string, Field>>;

type ValueOf<F extends Field> = F["type"] extends "string" ? string : F["type"] extends "number" ? number : boolean;

/** The values of fields, by name. */
export type Input<F extends Fields> = {
  readonly [K in keyof F]: F[K] extends { required: true } ? ValueOf<F[K]> : ValueOf<F[K]> | undefined;
};

/** What an operation is called with. */
export interface Call<F extends Fields = Fields> {
  readonly input: Input<F>;
  /** Who asks, for the record. */
  readonly by: string;
  readonly server: Server;
  /** The module of the Admin API. */
  readonly module: Module;
  readonly event: HttpEvent;
  readonly streams: Streams;
}

/** `read` looks, `admin` changes. */
export type Scope = "read" | "admin";

/** A JSON Schema, or the name of one in `shapes.ts`. */
export type Shape = string | Readonly<Record<string, unknown>>;

export interface Operation<F extends Fields = Fields> {
  /** Unique; in OpenAPI its `operationId`. */
  readonly name: string;
  readonly method: "GET" | "POST" | "DELETE";
  /** Below `/admin/api`; `{name}` stands for one segment, and is a field. */
  readonly path: string;
  readonly scope: Scope;
  /** One line. */
  readonly help: string;
  /** Those that the path does not name are of the query for GET and DELETE, of the JSON body for POST. */
  readonly input?: F;
  readonly answer: Shape;
  /** The answer is a Change, whose result is the status: 200, 409 when it was refused, 422 when it has failed. */
  readonly isChange?: boolean;
  /** The answer is no JSON: `run` gives all of it. */
  readonly isRaw?: boolean;
  run(call: Call<F>): unknown;
}

/** A table has operations of all kinds of fields: their values were checked by what the operation itself declares. */
export type AnyOperation = Operation<Fields>;

export function defineOperation<const F extends Fields>(operation: Operation<F>): AnyOperation {
  return operation as unknown as AnyOperation;
}

/** An operation whose answer is a record of a change. */
export function defineChange<const F extends Fields>(
  operation: Omit<Operation<F>, "answer" | "isChange" | "scope" | "method" | "run"> & {
    run(call: Call<F>): Promise<Change>;
  },
): AnyOperation {
  return defineOperation<F>({ ...operation, method: "POST", scope: "admin", answer: "Change", isChange: true });
}
