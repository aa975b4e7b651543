/** Requests for apps that ask for tokens. */
import type { HttpRequest, ResponseHeaders, TokenNeed, Tokens } from "../types.ts";

/** An exchange that may be refused. */
interface Checked {
  readonly service: { readonly environment: { readonly tokens?: Tokens | undefined } };
  readonly request: HttpRequest;
  readonly response: { readonly headers: ResponseHeaders };
  /** Answers with a status and its error page. */
  refuse(status: number, message?: string): void;
}

/** What an app asks of each request; undefined where it asks for no token. */
export function needOf(auth: "token" | { readonly scope?: string } | undefined, app: string): TokenNeed | undefined {
  if (auth === undefined) return undefined;
  return { kind: "app", name: (auth === "token" ? undefined : auth.scope) ?? app };
}

/** True when the request has what is needed; otherwise it is answered. */
export function isAdmitted(exchange: Checked, need: TokenNeed): boolean {
  const { service, request, response } = exchange;
  const found = service.environment.tokens?.authorize(request, need) ?? nobody;
  if (!("status" in found)) return true;
  Object.assign(response.headers, found.headers);
  exchange.refuse(found.status, found.message);
  return false;
}

/** Of a service without tokens. */
const nobody = { status: 401, message: "This server has no tokens", headers: { www_authenticate: "Bearer" } };
