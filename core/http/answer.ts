import type { ResponseFields } from "../types.ts";
import { answerInvalid, faultOf, strayField } from "./answer_fault.ts";
import type { Body, Response } from "./response.ts";
import { discard } from "./stream.ts";

/** What a handler's value is the answer to. */
export interface AnsweringExchange {
  readonly response: Response;
  readonly gone: boolean;
  /** The route whose value it is, for messages: `GET /hello/*`. */
  readonly place: string;
  /** Tells the author of the route something in the log, once. */
  advise(text: string): void;
  /** Goes on with the next handler. */
  run(): void;
  refuse(status: number): void;
  fail(thrown: unknown): void;
  rejected(reason: unknown): void;
}

/**
 * The one place where a handler's value becomes an answer (contract, part 4). True when the request is answered or will be;
 * false when the next handler is to be asked.
 */
export function answer(exchange: AnsweringExchange, value: unknown): boolean {
  const { response } = exchange;
  if (response.answered) {
    if (isThenable(value)) {
      value.then(discard, (reason: unknown) => exchange.rejected(reason));
    } else discard(value);
    return true;
  }
  switch (typeof value) {
    case "string":
      return response.send(value);
    case "number":
      return answerStatus(exchange, value);
    case "boolean":
      return value || response.send("");
    case "undefined":
      return false;
    case "object":
      return value === null ? false : answerObject(exchange, value);
    default:
      throw answerInvalid(exchange.place, faultOf(value) as NonNullable<ReturnType<typeof faultOf>>);
  }
}

function answerStatus(exchange: AnsweringExchange, status: number): boolean {
  if (!Number.isInteger(status) || status < 200 || status > 999) {
    throw new RangeError(`A handler returned ${status}: a status is a whole number from 200 to 999`);
  }
  if (status >= 400) exchange.refuse(status);
  else {
    exchange.response.status_code = status;
    exchange.response.status = undefined;
    exchange.response.send();
  }
  return true;
}

function answerObject(exchange: AnsweringExchange, value: object): boolean {
  if (isThenable(value)) {
    value.then(
      (settled) => {
        try {
          if (exchange.gone) discard(settled);
          else if (!answer(exchange, settled)) exchange.run();
        } catch (error) {
          exchange.fail(error);
        }
      },
      (reason: unknown) => exchange.rejected(reason),
    );
    return true;
  }
  if (value instanceof Error) {
    exchange.fail(value);
    return true;
  }
  if (value instanceof Uint8Array || isStream(value)) return exchange.response.send(value as Body);
  const fault = faultOf(value);
  if (fault !== undefined) throw answerInvalid(exchange.place, fault);
  const stray = strayField(value);
  if (stray !== undefined) {
    const { field, meant = "status_code, headers or body" } = stray;
    exchange.advise(`returned an object with ${field}, which no answer has: write ${meant}`);
  }
  const { response } = exchange;
  const { headers, status_code, status, body, trailers } = value as ResponseFields;
  Object.assign(response.headers, headers);
  if (status_code !== undefined) response.status_code = status_code;
  if (status !== undefined) response.status = status;
  if (trailers !== undefined) response.trailers = trailers;
  return response.send(body);
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

function isStream(value: object): boolean {
  return value instanceof ReadableStream || Symbol.asyncIterator in value;
}
