import type { HttpErrorEvent, ResponseHeaders } from "../../types.ts";
import { reasonOf } from "../../util/errors.ts";
import { withoutUnsendable } from "../../util/header_fields.ts";
import { plainPage } from "../message/failure.ts";
import type { HttpEnvironment } from "../settings.ts";

type Page = string | Uint8Array;

/**
 * Returns the body of an error response: from the first hook of `http-error` that returns one, else
 * one plain line. A failing hook is logged, and the plain line is used.
 */
export function errorPage(environment: HttpEnvironment, event: HttpErrorEvent, host: string): Page | Promise<Page> {
  const failed = (error: unknown): Page => {
    environment.log.error("A hook of http-error failed: %s", reasonOf(error));
    return plainPage(event.response, event);
  };
  const taken = (page: unknown): Page =>
    typeof page === "string" || page instanceof Uint8Array ? page : plainPage(event.response, event);
  try {
    const page = environment.fire("http-error", event, host);
    return page instanceof Promise ? page.then(taken, failed) : taken(page);
  } catch (error) {
    return failed(error);
  }
}

/** An exchange whose response is an error page. */
interface Paged {
  readonly service: { readonly environment: HttpEnvironment };
  readonly request: { readonly id: string };
  readonly response: { headers: ResponseHeaders; write(page: Page): void };
  readonly http2: boolean;
  readonly gone: boolean;
  cut(): void;
}

/** Sends the page, without headers that cannot be sent. */
export function sendPage(exchange: Paged, page: Page, event: HttpErrorEvent): void {
  const { request, response, gone } = exchange;
  if (gone) return;
  // A server error may be gone at the next attempt, so caches must not store it.
  if (event.code >= 500) response.headers.cache_control = "no-store";
  try {
    response.write(page);
  } catch (error) {
    const { log } = exchange.service.environment;
    const reasons = withoutUnsendable(response.headers, exchange.http2);
    for (const { message } of reasons)
      log.error("The error page of request %s is sent without a header: %s", request.id, message);
    if (reasons.length > 0) {
      sendPage(exchange, page, event);
      return;
    }
    log.error("The error page of request %s cannot be sent: %s", request.id, reasonOf(error));
    response.headers = {};
    try {
      response.write(plainPage(response, event));
    } catch {
      // Node keeps data that it could not send and would fail again. The client must not wait for a
      // response that never comes.
      exchange.cut();
    }
  }
}
