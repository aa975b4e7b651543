import type { HttpErrorEvent, ResponseHeaders } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import { withoutUnsendable } from "../util/header_fields.ts";
import { plainPage } from "./failure.ts";
import type { HttpEnvironment } from "./settings.ts";

type Page = string | Uint8Array;

/**
 * The body of an error answer: of the first hook of `http-error` that gives one, else a plain line. A hook that fails
 * is logged, and makes no page.
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

/** An exchange whose answer is an error page. */
interface Paged {
  readonly service: { readonly environment: HttpEnvironment };
  readonly request: { readonly id: string };
  readonly response: { headers: ResponseHeaders; write(page: Page): void };
  readonly http2: boolean;
  readonly gone: boolean;
}

/** Sends the page, without headers that cannot be sent. */
export function sendPage(exchange: Paged, page: Page, event: HttpErrorEvent): void {
  const { request, response, gone } = exchange;
  if (gone) return;
  // What failed once may well be answered the next time.
  if (event.code >= 500) response.headers.cache_control = "no-store";
  try {
    response.write(page);
  } catch (error) {
    const { log } = exchange.service.environment;
    const reasons = withoutUnsendable(response.headers, exchange.http2);
    for (const { message } of reasons)
      log.error("The page of request %s goes out without a header: %s", request.id, message);
    if (reasons.length > 0) {
      sendPage(exchange, page, event);
      return;
    }
    log.error("The page of request %s cannot be sent: %s", request.id, reasonOf(error));
    response.headers = {};
    response.write(plainPage(response, event));
  }
}
