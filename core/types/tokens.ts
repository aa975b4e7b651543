/**
 * Tokens: what callers present in the Authorization header, the access that it grants, and how
 * tokens are created.
 */
import type { HttpRequest } from "./exchange.ts";
import type { PresentedToken, TokenNeed } from "./presented_token.ts";
import type { DeclaredTokenScope } from "./token_scope.ts";

/** The response for a request that is refused. */
export interface TokenRefusal {
  readonly status: 401 | 403 | 429;
  /** A sentence for the caller. */
  readonly message: string;
  /** WWW-Authenticate, Retry-After: headers to send with the response. */
  readonly headers: Readonly<Record<string, string>>;
}

/** How a token may be presented. */
export interface TokenForms {
  /**
   * Whether the token may also be the password of basic credentials. Browsers send such credentials
   * automatically, so allow it only where pages of other origins are refused.
   */
  readonly basic?: boolean;
  /**
   * The token itself, if it came by another way than the header. Browsers send cookies with
   * requests of any page, so a cookie alone must not be enough.
   */
  readonly secret?: string;
}

/** `module.tokens`: the tokens of the server, for modules that check them. */
export interface Tokens {
  /**
   * Identifies the token that the request presents, and charges the request to it. Returns the
   * refusal if the token is not valid (unknown, expired, over its rate or quota), and undefined if
   * the request presents no token of the server.
   */
  identify(request: HttpRequest, forms?: TokenForms): PresentedToken | TokenRefusal | undefined;
  /**
   * Works as `identify`, but requires a token with a scope for `need`: a refusal says what is
   * missing.
   */
  authorize(request: HttpRequest, need: TokenNeed, forms?: TokenForms): PresentedToken | TokenRefusal;
  /** Returns the refusal for a token that lacks a scope for `need`. */
  lacks(token: PresentedToken, need: TokenNeed): TokenRefusal;
}

/** The properties of a new token. */
export interface NewToken {
  /** Letters, digits and `. _ @ -`, at most 64; unique. */
  readonly name: string;
  /**
   * Scopes such as `app:chat`, `*` for everything, or a form that a loaded module declares:
   * `modhost token scopes` lists them.
   */
  readonly scopes: readonly string[];
  /** `30d`, `12h`, or a time in ISO 8601. Without it the token is valid until it is revoked. */
  readonly expires?: string | undefined;
  /** Maximum rate of requests: `10/s`, `600/m`, `5000/h`. */
  readonly rate?: string | undefined;
  /** Maximum number of requests at once; default: those of one second, at least 1. */
  readonly burst?: number | undefined;
  /** Maximum bytes of request bodies: `1GB/day` (UTC), or `10GB` in total. */
  readonly bytes_in?: string | undefined;
  /** Maximum bytes of responses, in the same form. */
  readonly bytes_out?: string | undefined;
}

/** A token as lists show it. */
export interface TokenInfo extends NewToken {
  readonly id: string;
  /** ISO 8601, like the other times. */
  readonly created: string;
  /** The requester of the token. */
  readonly by: string;
  readonly is_expired: boolean;
  /**
   * Scopes that grant nothing because no loaded module declares them; undefined if there are none.
   */
  readonly undeclared_scopes?: readonly string[];
  /** To the minute; undefined for a token that was never used. */
  readonly last_used: string | undefined;
  /** Requests and bytes so far; after a crash those of the last half minute may be missing. */
  readonly requests: number;
  readonly received: number;
  readonly sent: number;
}

/**
 * Why a request with a token was refused: the token is unknown, not valid now, or lacks the scope.
 */
export type TokenRefusalReason = "unknown" | "expired" | "rate" | "quota" | "scope";

/** The use of a token, as metrics count it. */
export interface TokenMetrics {
  /** The token's name; undefined for requests with an unknown token. */
  readonly name: string | undefined;
  /** Requests that were allowed, and their bytes, as in `TokenInfo`. */
  readonly requests: number;
  readonly received: number;
  readonly sent: number;
  /** Refused requests since the start of the server, by reason. */
  readonly refused: Readonly<Partial<Record<TokenRefusalReason, number>>>;
}

/** A token that has just been created. */
export interface MadeToken {
  readonly token: TokenInfo;
  /** Shown only once: the server stores only its digest. */
  readonly secret: string;
}

/** `module.server.tokens`: creates and revokes tokens of the running server. */
export interface ServerTokens {
  list(): readonly TokenInfo[];
  /**
   * Returns every form that a scope of a new token can have: the host's own, and those that loaded
   * modules declare.
   */
  scopes(): readonly DeclaredTokenScope[];
  /** Returns one entry for each token, and one for unknown tokens. */
  metrics(): readonly TokenMetrics[];
  /**
   * Creates a token; rejects with TOKEN_INVALID or TOKEN_EXISTS. `by`: who requests it, for the
   * record.
   */
  create(wanted: NewToken, options?: { readonly by?: string | undefined }): Promise<MadeToken>;
  /**
   * Revokes a token by name, id or secret: its open requests are aborted, and later ones are
   * refused. Rejects with TOKEN_UNKNOWN.
   */
  revoke(nameOrId: string, options?: { readonly by?: string | undefined }): Promise<TokenInfo>;
}
