/** Whose token it is. */
import { findToken, type KnownToken, readAuthorization, readTokens } from "../../core/http/index.ts";

/** Of tokens that name nobody. */
const unnamed = "";

/** Tokens with the user that each belongs to. */
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

/** Undefined where the Authorization header presents no known bearer token. */
export function userBy(header: string | undefined, users: Users): string | undefined {
  const { scheme, credentials = "" } = readAuthorization(header) ?? {};
  return scheme === "bearer" ? findToken([credentials], users)?.user : undefined;
}
