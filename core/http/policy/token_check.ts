/** Checks requests for apps that require tokens. */
import type { AppAuth, HttpRequest, ResponseHeaders, TokenNeed, Tokens } from "../../types.ts";

/** An exchange that may be refused. */
interface Checked {
  readonly service: { readonly environment: { readonly tokens?: Tokens | undefined } };
  readonly request: HttpRequest;
  readonly response: { readonly headers: ResponseHeaders };
  /** Responds with a status and its error page. */
  refuse(status: number, message?: string): void;
}

/** Returns the token that an app requires of each request; undefined when it requires none. */
export function needOf(auth: AppAuth | undefined, app: string): TokenNeed | undefined {
  if (auth === undefined) return undefined;
  if (auth !== "token" && "need" in auth) return auth.need;
  return { kind: "app", name: (auth === "token" ? undefined : auth.scope) ?? app };
}

/** Returns true when the request has the required token. Otherwise refuses it. */
export function isAdmitted(exchange: Checked, need: TokenNeed): boolean {
  const { service, request, response } = exchange;
  const found = service.environment.tokens?.authorize(request, need) ?? nobody;
  if (!("status" in found)) return true;
  Object.assign(response.headers, found.headers);
  exchange.refuse(found.status, found.message);
  return false;
}

/** The refusal of a service without tokens. */
const nobody = { status: 401, message: "This server has no tokens", headers: { www_authenticate: "Bearer" } };
