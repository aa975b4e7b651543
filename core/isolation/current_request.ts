/** The request for which code of a worker or sandbox runs. */
import { AsyncLocalStorage } from "node:async_hooks";
import { ModhostError } from "../util/errors.ts";

interface CurrentRequest {
  /** As the host knows it. */
  readonly id: string;
  fetches: number;
}

export const currentRequest = new AsyncLocalStorage<CurrentRequest>();

/**
 * Bounds the calls of `fetch` for one request: several of them may share a connection, which the
 * host counts once. Code that does not want to be bounded gets around this, and not around the
 * host's count.
 */
export function limitFetch(name: string, most: number): void {
  const { fetch } = globalThis;
  globalThis.fetch = async (...values: Parameters<typeof fetch>) => {
    const request = currentRequest.getStore();
    if (request !== undefined) {
      if (request.fetches >= most) throw tooManySubrequests(name, most);
      request.fetches += 1;
    }
    return fetch(...values);
  };
}

/** Returns the error for a request that needs too many others. */
export const tooManySubrequests = (name: string, most: number): ModhostError =>
  new ModhostError("LIMIT_REACHED", {
    name,
    what: "makes too many requests to other hosts for one request",
    limit: "subrequests",
    most,
  });
