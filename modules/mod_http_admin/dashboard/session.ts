/** Signing in: the browser stores the encrypted token in a cookie that no script can read. */
import { strangerReason } from "../../../core/http/index.ts";
import { json } from "../../../core/index.ts";
import type { Handler, HttpRequest, Module, RouteTable } from "../../../core/types.ts";
import { type Authorize, assertOwnPage, bearerOf } from "../access.ts";
import { withAdminErrors } from "../api.ts";
import { AdminError } from "../errors.ts";
import type { PageKeys } from "./keys.ts";

export interface SessionDeps {
  readonly module: Module;
  readonly keys: () => Promise<PageKeys>;
  readonly authorize: Authorize;
}

/**
 * `/admin/session`: POST with a bearer token signs in and returns the page key, DELETE signs out.
 */
export function sessionRoutes({ module, keys, authorize }: SessionDeps): RouteTable {
  const signIn: Handler = (event) =>
    withAdminErrors(module, event, async () => {
      const { request } = event;
      assertPrivate(request);
      const token = bearerOf(request);
      if (token === undefined) {
        throw new AdminError("unauthorized", "Sign in with a token: Authorization: Bearer TOKEN");
      }
      const { by, scopes } = await authorize(request);
      const pages = await keys();
      const sealed = pages.seal(token);
      const session = { by, scopes: [...scopes], page_key: pages.of(`session ${sealed}`) };
      return json(session, { headers: { set_cookie: cookie(pages, request, sealed), cache_control: "no-store" } });
    });
  const signOut: Handler = (event) =>
    withAdminErrors(module, event, async () => {
      const { request } = event;
      assertOwnPage(request);
      const pages = await keys();
      const sessions = pages.sessions(request);
      // Other pages must not be able to sign a user out.
      if (sessions.length > 0 && !sessions.some(({ identity }) => pages.isGiven(request, identity)))
        throw pages.refusal();
      return json({}, { headers: { set_cookie: `${cookie(pages, request, "")}; Max-Age=0` } });
    });
  return { "POST /session": signIn, "DELETE /session": signOut };
}

function cookie({ cookie }: PageKeys, { secure }: HttpRequest, value: string): string {
  return `${cookie}=${value}; Path=/admin; HttpOnly; SameSite=Strict${secure ? "; Secure" : ""}`;
}

/** @throws {AdminError} forbidden: the token would cross the network unencrypted */
function assertPrivate(request: HttpRequest): void {
  if (request.secure || strangerReason(request, { hosts: new Set() }) === undefined) return;
  throw new AdminError("forbidden", "Signing in needs HTTPS: open the dashboard by https, or through an SSH tunnel");
}
