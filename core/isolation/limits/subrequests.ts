/** Bounds the connections that a sandboxed module opens to other hosts for each of its requests. */
import { Bucket } from "../../util/rate_limit.ts";
import { tooManySubrequests } from "../current_request.ts";
import type { RequestAccount } from "./request_account.ts";

/**
 * Returns a function that counts a connection for the request with the id that the sandbox gives.
 * A wrong id is no way out: without a request whose response has not begun, the connection counts
 * for the work that a module does by itself.
 */
export function subrequestLimit(name: string, most: number, requests: RequestAccount): (request: unknown) => void {
  const own = new Bucket({ perSecond: most, burst: most }, performance.now());
  return (id) => {
    const request = requests.find(id);
    const isAllowed = request === undefined ? own.take(performance.now()) === 0 : request.connections < most;
    if (!isAllowed) throw tooManySubrequests(name, most);
    if (request !== undefined) request.connections += 1;
  };
}
