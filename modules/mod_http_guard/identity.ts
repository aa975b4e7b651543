/**
 * Headers in which a proxy names the user. They are accepted from trusted proxies, and removed from
 * all other requests.
 */
import { foldedName } from "../../core/http/index.ts";
import type { HttpRequest, MiddlewareContext } from "../../core/types.ts";

export class IdentityHeaders {
  /** In lower case, the header with the user's name first. */
  readonly #names: readonly string[];
  /**
   * The folded name, because apps and upstreams treat `X-Remote-User` and `X_Remote_User` as one
   * header.
   */
  readonly #seen: ReadonlySet<string>;

  constructor(names: readonly string[]) {
    this.#names = names.map((name) => name.toLowerCase());
    this.#seen = new Set(names.map(foldedName));
  }

  /**
   * Returns the user that a trusted proxy names. Removes all lines that are not the proxy's own:
   * lines from anybody else, lines in another spelling, and duplicate lines, because somebody else
   * wrote one of them.
   */
  take({ req }: MiddlewareContext, request: HttpRequest): string | undefined {
    const { headers, rawHeaders } = request.raw;
    const lines = new Map<string, number[]>();
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = (rawHeaders[at] as string).toLowerCase();
      if (this.#seen.has(foldedName(name))) lines.set(name, [...(lines.get(name) ?? []), at]);
    }
    if (lines.size === 0) return undefined;
    const isOwn = (name: string, at: readonly number[]) =>
      request.from_proxy && this.#names.includes(name) && at.length === 1;
    const foreign = [...lines].filter(([name, at]) => !isOwn(name, at)).map(([name]) => name);
    if (foreign.length > 0) strip([request.raw, req], request, new Set(foreign));
    const user = headers[this.#names[0] as string];
    return typeof user === "string" && user !== "" ? user : undefined;
  }
}

/** Returns the name of the header in the table that apps read. */
function seenName(name: string): string {
  return name.toLowerCase().replaceAll("-", "_");
}

/**
 * A request as Node.js represents it. Over HTTP/2, middleware sees a different object than route
 * handlers.
 */
type Message = Pick<HttpRequest["raw"], "headers" | "rawHeaders">;

/**
 * Removes the headers with these names, in lower case, from every view of the request that exists
 * so far.
 */
function strip(messages: readonly Message[], request: HttpRequest, names: ReadonlySet<string>): void {
  const table = request.headers as Record<string, string | undefined>;
  for (const name of names) delete table[seenName(name)];
  for (const { headers, rawHeaders } of messages) {
    for (const name of names) delete headers[name];
    for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
      if (names.has((rawHeaders[at] as string).toLowerCase())) rawHeaders.splice(at, 2);
    }
  }
  // If the client sent another spelling of the proxy's header, the table treats both as one. The
  // proxy's own line is restored.
  const { rawHeaders } = request.raw;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (!name.startsWith(":")) table[seenName(name)] ??= rawHeaders[at + 1];
  }
}
