/**
 * Reads the input of an operation from the path, the query or the JSON body, and checks it against
 * the declaration.
 */

import { ModhostError } from "../../core/index.ts";
import type { AdminField, AdminFields, AdminInput, AdminOperation, HttpRequest } from "../../core/types.ts";
import { KEY_FIELD } from "./dashboard/keys.ts";
import { AdminError } from "./errors.ts";

/** Only callers with access get this far. */
const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Default maximum length of a text field. Names and paths stay in the log and in the audit file
 * forever.
 */
const MAX_TEXT_LENGTH = 4096;

/**
 * The body of an operation that takes a stream is not read. @throws {AdminError} invalid,
 * too_large, unsupported
 */
export async function readInput(
  operation: AdminOperation,
  segments: Readonly<Record<string, string>>,
  request: HttpRequest,
): Promise<AdminInput<AdminFields>> {
  const { input: fields = {} } = operation;
  const given = { ...(hasBody(operation) ? await bodyOf(request) : queryOf(request)), ...segments };
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(fields, name));
  if (unknown !== undefined) {
    const known = Object.keys(fields).join(", ") || "none";
    throw new AdminError("invalid", `There is no field ${JSON.stringify(unknown)} here; known: ${known}`);
  }
  const values = Object.entries(fields).map(([name, field]) => [name, checked(name, field, given[name])]);
  return Object.fromEntries(values) as AdminInput<AdminFields>;
}

/** Whether the operation takes its fields as a JSON body. */
export const hasBody = ({ method, takes }: Pick<AdminOperation, "method" | "takes">) =>
  method === "POST" && takes !== "stream";

async function bodyOf(request: HttpRequest): Promise<Record<string, unknown>> {
  const [length, type, coding] = ["content-length", "content-type", "transfer-encoding"].map((name) =>
    request.header(name),
  );
  if ((length === undefined || length === "0") && coding === undefined && request.httpversion !== "2.0") return {};
  if (type !== undefined && !/^application\/json\s*(?:;|$)/i.test(type))
    throw new AdminError("unsupported", `The body must be application/json, not ${type}`);
  const value = await request.json({ max_bytes: MAX_BODY_BYTES }).catch((error: unknown) => {
    if (!ModhostError.is(error)) throw error;
    if (error.code === "BODY_TOO_LARGE") throw new AdminError("too_large", error.message);
    if (error.code === "BODY_NOT_JSON") throw new AdminError("invalid", error.message);
    throw error;
  });
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new AdminError("invalid", "The body must be a JSON object");
  return value as Record<string, unknown>;
}

function queryOf({ url }: HttpRequest): Record<string, unknown> {
  const given: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(url.query ?? "")) {
    if (name === KEY_FIELD) continue;
    if (Object.hasOwn(given, name)) throw new AdminError("invalid", `The field ${name} is given twice`);
    given[name] = value;
  }
  return given;
}

export const maxLengthOf = ({ maxLength = MAX_TEXT_LENGTH }: AdminField) => maxLength;

function checked(name: string, field: AdminField, given: unknown): unknown {
  if (given === undefined || given === null) {
    if (field.required !== true) return undefined;
    throw new AdminError("invalid", `The field ${name} is missing: ${field.describe}`);
  }
  const longest = maxLengthOf(field);
  if (typeof given === "string" && given.length > longest)
    throw new AdminError("invalid", `The field ${name} has ${given.length} characters; it takes at most ${longest}`);
  const value = typeof given === "string" ? fromText(field, given) : given;
  const allowed = field.values === undefined ? `a ${field.type}` : `one of ${field.values.join(", ")}`;
  const isRight = typeof value === field.type && !Number.isNaN(value);
  if (!isRight || field.values?.includes(value as string) === false)
    throw new AdminError("invalid", `The field ${name} must be ${allowed}`);
  return value;
}

function fromText({ type }: AdminField, text: string): unknown {
  if (type === "number") return text.trim() === "" ? Number.NaN : Number(text);
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : undefined;
  return text;
}
