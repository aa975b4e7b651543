/** Signing in: a browser keeps a token in a cookie that no script can read. */
import { readAuthorization, strangerReason } from "../../../core/http/index.ts";
import { json } from "../../../core/index.ts";
import type { Handler, HttpRequest, Module, RouteTable } from "../../../core/types.ts";
import type { Authorize } from "../access.ts";
import { answered } from "../api.ts";
import { AdminError } from "../errors.ts";
import { isOfBrowser, type PageKeys } from "./keys.ts";

export interface SessionDeps {
  readonly module: Module;
  readonly keys: () => Promise<PageKeys>;
  readonly authorize: Authorize;
}

/** `/admin/session`: POST with a bearer token signs in, DELETE signs out. */
export function sessionRoutes({ module, keys, authorize }: SessionDeps): RouteTable {
  const signIn: Handler = (event) =>
    answered(module, event, async () => {
      const { request } = event;
      assertPrivate(request);
      const { scheme, credentials } = readAuthorization(request.headers.authorization) ?? {};
      if (scheme !== "bearer" || credentials === undefined) {
        throw new AdminError("unauthorized", "Sign in with a token: Authorization: Bearer TOKEN");
      }
      const { by, scopes } = await authorize(request);
      return json({ by, scopes: [...scopes] }, { headers: { set_cookie: await cookies(request, credentials) } });
    });
  const signOut: Handler = (event) =>
    answered(module, event, async () => {
      const { request } = event;
      const pages = await keys();
      const session = pages.session(request);
      // Another page of this origin shall sign nobody out.
      if (session !== undefined && isOfBrowser(request)) pages.assert(request, `session ${session}`);
      return json({}, { headers: { set_cookie: await cookies(request, "", "; Max-Age=0") } });
    });

  /**
   * That of the session, and one for the start page. They are sent along when a link leads here, but with nothing that a
   * page of another site asks for.
   */
  async function cookies(request: HttpRequest, value: string, end = ""): Promise<string[]> {
    const { cookie, mark } = await keys();
    const { pathname } = new URL(module.http_url());
    const rest = `HttpOnly; SameSite=Lax${request.secure ? "; Secure" : ""}${end}`;
    return [`${cookie}=${encodeURIComponent(value)}; Path=${pathname}; ${rest}`, `${mark}=1; Path=/; ${rest}`];
  }
  return { "POST /session": signIn, "DELETE /session": signOut };
}

/** @throws {AdminError} forbidden: the token would go over the network for everybody to read */
function assertPrivate(request: HttpRequest): void {
  if (request.secure || strangerReason(request, { hosts: new Set() }) === undefined) return;
  throw new AdminError("forbidden", "Signing in needs HTTPS: open the dashboard by https, or through an SSH tunnel");
}
