import type { HttpErrorEvent } from "../types.ts";
import { reasonOf } from "../util/errors.ts";
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
