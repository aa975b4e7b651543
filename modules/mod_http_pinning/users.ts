/** Whose token it is. */
import { createHash } from "node:crypto";
import { ModhostError } from "../../core/index.ts";

/** Of tokens that name nobody. */
const unnamed = "";

/** Users by the digest of their token: whoever measures how long a look-up takes learns nothing of the tokens. */
export type Users = ReadonlyMap<string, string>;

const digestOf = (token: string): string => createHash("sha256").update(token, "utf8").digest("hex");

/** Reads the option `pinning_tokens`. @throws ModhostError OPTION_INVALID */
export function usersFrom(option: unknown): Users {
  if (option === undefined || option === null) return new Map();
  if (typeof option !== "object") throw invalid();
  const entries = Array.isArray(option)
    ? option.map((token): [unknown, unknown] => [token, undefined])
    : Object.entries(option);
  return new Map(
    entries.map(([token, settings]) => {
      if (typeof token !== "string" || token === "") throw invalid();
      return [digestOf(token), userOf(settings ?? {})];
    }),
  );
}

function userOf(settings: unknown): string {
  if (typeof settings !== "object" || Object.keys(settings as object).some((key) => key !== "user")) throw invalid();
  const { user = unnamed } = settings as { user?: unknown };
  if (typeof user !== "string") throw invalid();
  return user;
}

/** Says what is allowed, and nothing of what was written there. */
const invalid = () =>
  new ModhostError("OPTION_INVALID", {
    name: "pinning_tokens",
    value: "***",
    allowed: 'it must be a list of tokens, or an object from token to { user: "anna" }',
  });

/** Undefined where the Authorization header presents no known bearer token. */
export function userBy(header: string | undefined, users: Users): string | undefined {
  const [, token] = /^\s*bearer\s+(\S+)\s*$/i.exec(header ?? "") ?? [];
  return token === undefined ? undefined : users.get(digestOf(token));
}
