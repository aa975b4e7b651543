/** Headers by which a proxy says who asks: believed of trusted proxies, and taken from everybody else's requests. */
import type { HttpRequest, MiddlewareContext } from "../../core/types.ts";

export class IdentityHeaders {
  /** In lower case, the one with the name of the user first. */
  readonly #names: readonly string[];
  /** As apps see them: `X-Remote-User`, `x-remote-user` and `X_Remote_User` are one header to them. */
  readonly #seen: ReadonlySet<string>;

  constructor(names: readonly string[]) {
    this.#names = names.map((name) => name.toLowerCase());
    this.#seen = new Set(names.map(seenName));
  }

  /**
   * Gives the user that a trusted proxy names, and takes all lines out of the request that are not the proxy's own: those
   * of anybody else, those in another spelling, and all that come twice, since one of them was written by somebody else.
   */
  take({ req }: MiddlewareContext, request: HttpRequest): string | undefined {
    const { rawHeaders } = req;
    const lines = new Map<string, number[]>();
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = (rawHeaders[at] as string).toLowerCase();
      if (this.#seen.has(seenName(name))) lines.set(name, [...(lines.get(name) ?? []), at]);
    }
    if (lines.size === 0) return undefined;
    const isOwn = (name: string, at: readonly number[]) =>
      request.from_proxy && this.#names.includes(name) && at.length === 1;
    const foreign = [...lines].filter(([name, at]) => !isOwn(name, at)).flatMap(([, at]) => at);
    if (foreign.length > 0) strip(req, request, foreign);
    const user = req.headers[this.#names[0] as string];
    return typeof user === "string" && user !== "" ? user : undefined;
  }
}

function seenName(name: string): string {
  return name.toLowerCase().replaceAll("-", "_");
}

/** Every view of the headers that may have been made so far does without these lines as well. */
function strip(req: MiddlewareContext["req"], request: HttpRequest, lines: readonly number[]): void {
  const headers = request.headers as Record<string, string | undefined>;
  for (const at of lines.toSorted((a, b) => b - a)) {
    const [name = ""] = req.rawHeaders.splice(at, 2);
    delete req.headers[name.toLowerCase()];
    delete headers[seenName(name)];
  }
  // The proxy's own line, where another one stood beside it under the name that apps see.
  for (let at = 0; at < req.rawHeaders.length; at += 2) {
    const name = req.rawHeaders[at] as string;
    if (!name.startsWith(":")) headers[seenName(name)] ??= req.rawHeaders[at + 1];
  }
}
