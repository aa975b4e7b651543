/** The token of a request, and the access that it gives. */

/**
 * The access that a request needs. `kind` names the kind of scopes that can grant it; the other
 * fields belong to that kind: `{ kind: "app", name: "chat" }` for the host's own kind,
 * `{ kind: "shop", access: "read" }` for a kind that a module declares with
 * `module.provides("token-scope", ...)`.
 */
export interface TokenNeed {
  readonly kind: string;
  readonly [field: string]: unknown;
}

/**
 * The access that an app with `auth` needs: the name is that of the app, or of `auth: { scope }`.
 * Scopes `app:NAME` grant it.
 */
export interface AppNeed extends TokenNeed {
  readonly kind: "app";
  readonly name: string;
}

/** The token of a request that was let in: `event.request.token`. */
export interface PresentedToken {
  readonly id: string;
  /** As `modhost token list` shows it; never the secret. */
  readonly name: string;
  readonly scopes: readonly string[];
  /**
   * Returns true if a scope of the token grants this access. Scopes of a kind that no loaded module
   * declares grant nothing. In an isolated module only `app` and the kinds that it declares itself
   * are known.
   */
  allows(need: TokenNeed): boolean;
}
