/** The token scopes of the pinning service. */
import type { TokenScopeKind } from "../../core/types.ts";

/** Stands for any user of the service. The scope of a token names the user. */
export const anyUser = { kind: "pinning" } as const;

export const userScopes: TokenScopeKind<typeof anyUser, string> = {
  kind: "pinning",
  forms: [{ form: "pinning:USER", help: "the pins of this user of the pinning service" }],
  parse: (text) => /^pinning:([\w.@-]+)$/.exec(text)?.[1],
  covers: () => true,
  describe: () => "pinning:USER",
};

/** The kinds of scopes that this module declares. */
export const scopes = [userScopes] as const;
