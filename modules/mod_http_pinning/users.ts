/** Maps tokens to users. */

import { findToken, type KnownToken, readAuthorization, readTokens } from "../../core/http/index.ts";
import type { PresentedToken } from "../../core/types.ts";
import { userScopes } from "./scopes.ts";

/** The user of tokens that name none. */
const unnamed = "";

/** Tokens, each with its user. */
export type Users = readonly (KnownToken & { readonly user: string })[];

/** Reads the option `pinning_tokens`. @throws ModhostError OPTION_INVALID */
export function usersFrom(option: unknown): Users {
  return readTokens(option, {
    name: "pinning_tokens",
    example: '{ user: "anna" }',
    read: ({ user = unnamed, ...others }) =>
      typeof user === "string" && Object.keys(others).length === 0 ? { user } : undefined,
  });
}

/** Returns the user of a server token. A token for everything belongs to the unnamed user. */
export function userOf({ scopes }: PresentedToken): string {
  return scopes.map((scope) => userScopes.parse(scope)).find((user) => user !== undefined) ?? unnamed;
}

/**
 * Returns the user of the bearer token in an Authorization header; undefined if the header or the
 * user is unknown.
 */
export function userBy(header: string | undefined, users: Users): string | undefined {
  const { scheme, credentials = "" } = readAuthorization(header) ?? {};
  return scheme === "bearer" ? findToken([credentials], users)?.user : undefined;
}
