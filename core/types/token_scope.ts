/**
 * Kinds of token scopes: a module declares one so that tokens can grant access to what it protects.
 */
import type { TokenNeed } from "./presented_token.ts";

/** One syntax of a scope, as help, the dashboard, errors and the reference show it. */
export interface TokenScopeForm {
  /** The syntax, with capital letters for what people fill in: `room:/PATH`. */
  readonly form: string;
  /** The access that the scope grants, such as "the rooms below a path". */
  readonly help: string;
}

/**
 * A kind of scopes with fixed names. `{ kind: "shop", help, accesses: { read: "the orders" } }`
 * declares the scopes `shop`, which grants every need of the kind, and `shop:read`, which grants
 * `{ kind: "shop", access: "read" }`. Isolated modules can declare it, too, since it consists of
 * data only.
 */
export interface NamedTokenScopes {
  /**
   * The word before the colon: lower case letters, digits, `_` and `-`. Only one module may declare
   * it.
   */
  readonly kind: string;
  /** The access that the scope without a name grants. */
  readonly help: string;
  /** The access that the scopes with a name grant, by that name. */
  readonly accesses?: Readonly<Record<string, string>>;
}

/**
 * A kind of scopes with its own syntax. `Need` is the access that requests need, `Scope` the parsed
 * form of a scope.
 */
export interface TokenScopeKind<Need extends TokenNeed = TokenNeed, Scope = unknown> {
  /**
   * The word before the colon: lower case letters, digits, `_` and `-`. Only one module may declare
   * it.
   */
  readonly kind: Need["kind"];
  readonly forms: readonly TokenScopeForm[];
  /**
   * Parses a whole scope, such as `room:/team/a`. Returns undefined for a text that is not a scope
   * of the kind.
   */
  parse(text: string): Scope | undefined;
  /** Returns true if the scope grants the need. It is called for requests, so it must be fast. */
  covers(scope: Scope, need: Need): boolean;
  /**
   * Returns a scope that would grant the need: clients read it in the `WWW-Authenticate` header of
   * a refusal.
   */
  describe(need: Need): string;
  /**
   * Returns the sentence for a caller whose token lacks the scope. Default: the token and the scope
   * that it lacks.
   */
  refusal?(need: Need, token: { readonly name: string }): string;
  /**
   * Called when a token is created, with each of its scopes of this kind. Returns the allowed
   * values if the scope names something that does not exist, and undefined if the scope is valid.
   */
  check?(scope: Scope): string | undefined;
}

/** The item of `module.provides("token-scope", ...)`. Declare it before the routes that need it. */
export type TokenScopeItem = NamedTokenScopes | TokenScopeKind;

/** A syntax of scopes that tokens of the server can have. */
export interface DeclaredTokenScope extends TokenScopeForm {
  /** The module that declares it; undefined for the host's own scopes. */
  readonly module: string | undefined;
}
