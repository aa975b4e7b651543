/** The responses for refused requests, the same wherever tokens are required. */
import type { TokenNeed, TokenRefusal } from "../types.ts";
import type { ScopeKinds } from "./scopes.ts";
import type { StoredToken } from "./spec.ts";

const REALM = 'Bearer realm="modhost"';

/** The request contains no token. */
export const missing: TokenRefusal = {
  status: 401,
  message: "This needs a token: send Authorization: Bearer TOKEN",
  headers: { www_authenticate: REALM },
};

/** The response does not reveal whether the token ever existed. */
export const unknown: TokenRefusal = notGood("This is not a token of this server: it is unknown, or was revoked");

export function expired({ name, expires }: StoredToken): TokenRefusal {
  return notGood(`The token ${name} has expired (${expires}): ask for a new one`);
}

export function lacking(token: { readonly name: string }, need: TokenNeed, kinds: ScopeKinds): TokenRefusal {
  return {
    status: 403,
    message: kinds.refusalFor(need, token),
    headers: { www_authenticate: `${REALM}, error="insufficient_scope", scope="${kinds.scopeFor(need)}"` },
  };
}

export function tooFast({ name, rate }: StoredToken, seconds: number): TokenRefusal {
  return {
    status: 429,
    message: `The token ${name} may be used for ${rate} requests: try again in ${seconds} s`,
    headers: { retry_after: String(seconds) },
  };
}

/** `seconds`: the time until the quota is reset; undefined if it never is. */
export function overQuota(name: string, field: string, quota: string, seconds: number | undefined): TokenRefusal {
  const message = `The quota ${field} of the token ${name} is used up (${quota})`;
  if (seconds === undefined) return { status: 403, message, headers: {} };
  return {
    status: 429,
    message: `${message}: it is reset at midnight UTC`,
    headers: { retry_after: String(seconds) },
  };
}

function notGood(message: string): TokenRefusal {
  return {
    status: 401,
    message,
    headers: { www_authenticate: `${REALM}, error="invalid_token", error_description="${message}"` },
  };
}
