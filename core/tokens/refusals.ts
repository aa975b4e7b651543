/** What is told to those who are not let in: the same wherever tokens are asked for. */
import type { TokenNeed, TokenRefusal } from "../types.ts";
import { scopeFor } from "./scopes.ts";
import type { StoredToken } from "./spec.ts";

const REALM = 'Bearer realm="modhost"';

/** There is no token in the request. */
export const missing: TokenRefusal = {
  status: 401,
  message: "This needs a token: send Authorization: Bearer TOKEN",
  headers: { www_authenticate: REALM },
};

/** It is not told whether it was ever one. */
export const unknown: TokenRefusal = notGood("This is no token of this server: it is not known, or was revoked");

export function expired({ name, expires }: StoredToken): TokenRefusal {
  return notGood(`The token ${name} has expired (${expires}): ask for a new one`);
}

export function lacking({ name }: { readonly name: string }, need: TokenNeed): TokenRefusal {
  const scope = scopeFor(need);
  return {
    status: 403,
    message: need.kind === "mfs" ? outside(name, need.path) : `The token ${name} lacks the scope ${scope}`,
    headers: { www_authenticate: `${REALM}, error="insufficient_scope", scope="${scope}"` },
  };
}

export function tooFast({ name, rate }: StoredToken, seconds: number): TokenRefusal {
  return {
    status: 429,
    message: `The token ${name} may be used for ${rate} requests: try again in ${seconds} s`,
    headers: { retry_after: String(seconds) },
  };
}

/** `seconds`: until the quota begins anew; undefined where it does not. */
export function overQuota(name: string, field: string, quota: string, seconds: number | undefined): TokenRefusal {
  const message = `The quota ${field} of the token ${name} is used up (${quota})`;
  if (seconds === undefined) return { status: 403, message, headers: {} };
  return {
    status: 429,
    message: `${message}: it begins anew at midnight UTC`,
    headers: { retry_after: String(seconds) },
  };
}

function outside(name: string, path: string): string {
  const shown = JSON.stringify(path.length > 100 ? `${path.slice(0, 99)}…` : path);
  return `The token ${name} is for other directories than ${shown} names (paths with . or .. are refused)`;
}

function notGood(message: string): TokenRefusal {
  return {
    status: 401,
    message,
    headers: { www_authenticate: `${REALM}, error="invalid_token", error_description="${message}"` },
  };
}
