/** Errors as plain objects, so that they can be copied to another thread or process. */
import { clipped } from "../util/clipped.ts";
import { type ErrorCode, errorTable, ModhostError } from "../util/errors.ts";

const MAX_NAME = 200;

export interface SerializedError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly code: unknown;
}

/** Describes any thrown value. Its getters and its conversion to text may throw, too. */
export function serializeError(thrown: unknown): SerializedError {
  try {
    if (!(thrown instanceof Error)) return readError({ message: String(thrown) });
    const { name, message, stack, code } = thrown as Error & { readonly code?: unknown };
    return readError({ name, message: String(message), stack, code });
  } catch {
    return readError(undefined);
  }
}

export function deserializeError(received: unknown): Error {
  const { name, message, stack, code } = readError(received);
  if (name === "ModhostError" && typeof code === "string" && Object.hasOwn(errorTable, code)) {
    return Object.assign(new ModhostError(code as ErrorCode), { message, ...(stack === undefined ? {} : { stack }) });
  }
  return plainError({ name, message, stack, code });
}

/**
 * Returns the error of code that must not raise errors of the host: some of them prevent its start,
 * or say that a module is missing.
 */
export function deserializeForeignError(received: unknown): Error {
  const error = readError(received);
  return plainError({ ...error, name: error.name === "ModhostError" ? "Error" : error.name });
}

function plainError({ name, message, stack, code }: SerializedError): Error {
  const error = new Error(message);
  error.name = name;
  if (stack !== undefined) error.stack = stack;
  return code === undefined ? error : Object.assign(error, { code });
}

/** Reads what another thread or process has sent, whatever its form. */
function readError(error: unknown): SerializedError {
  const { name, message, stack, code } = (typeof error === "object" && error !== null ? error : {}) as SerializedError;
  return {
    name: typeof name === "string" ? name.slice(0, MAX_NAME) : "Error",
    message: typeof message === "string" ? clipped(message) : "an error that cannot be read",
    stack: typeof stack === "string" ? clipped(stack) : undefined,
    code: typeof code === "string" ? code.slice(0, MAX_NAME) : typeof code === "number" ? code : undefined,
  };
}
