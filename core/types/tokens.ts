/** Tokens: what callers present in the Authorization header, what it opens, and how tokens are made. */
import type { HttpRequest } from "./exchange.ts";
import type { PresentedToken, TokenNeed } from "./presented_token.ts";

/** Why a request is not let in. */
export interface TokenRefusal {
  readonly status: 401 | 403 | 429;
  /** A sentence for the caller. */
  readonly message: string;
  /** WWW-Authenticate, Retry-After: to be sent with the answer. */
  readonly headers: Readonly<Record<string, string>>;
}

/** How a token may be presented. */
export interface TokenForms {
  /** Also as the password of basic credentials. A browser sends those by itself: only where pages of other origins are refused. */
  readonly basic?: boolean;
  /** The token itself, where it came by another way than the header. A cookie goes with what any page asks: ask for more than that. */
  readonly secret?: string;
}

/** `module.tokens`: the tokens of the server, for modules that ask for them. */
export interface Tokens {
  /**
   * The token that the request presents, charged with the request; the reason when it is no longer good (unknown, expired,
   * over its rate or quota); undefined when it presents no token of the server.
   */
  identify(request: HttpRequest, forms?: TokenForms): PresentedToken | TokenRefusal | undefined;
  /** As `identify`, where a token with a scope for `need` is required: a refusal says what lacks. */
  authorize(request: HttpRequest, need: TokenNeed, forms?: TokenForms): PresentedToken | TokenRefusal;
  /** What a token without a scope for it is told. */
  lacks(token: PresentedToken, need: TokenNeed): TokenRefusal;
}

/** What is asked for in a new token. */
export interface NewToken {
  /** Letters, digits and `. _ @ -`, at most 64; unique. */
  readonly name: string;
  /** Such as `rpc:pin:read`, `mfs:/team/a`, `app:chat`, `admin:read`, `metrics`. */
  readonly scopes: readonly string[];
  /** `30d`, `12h`, or a time in ISO 8601. Without it the token is good until it is revoked. */
  readonly expires?: string | undefined;
  /** Requests in a time: `10/s`, `600/m`, `5000/h`. */
  readonly rate?: string | undefined;
  /** Requests that may come at once; default: those of one second, at least 1. */
  readonly burst?: number | undefined;
  /** Bytes of request bodies: `1GB/day` (UTC), or `10GB` in total. */
  readonly bytes_in?: string | undefined;
  /** Bytes of answers, in the same form. */
  readonly bytes_out?: string | undefined;
}

/** A token as it is listed. */
export interface TokenInfo extends NewToken {
  readonly id: string;
  /** ISO 8601, like the other times. */
  readonly created: string;
  /** Who has made it. */
  readonly by: string;
  readonly is_expired: boolean;
  /** To the minute; undefined for one that was never used. */
  readonly last_used: string | undefined;
  /** Requests and bytes so far; after a crash those of the last half minute may lack. */
  readonly requests: number;
  readonly received: number;
  readonly sent: number;
}

/** Why a request with a token was refused: it is no token of the server, or no longer good, or good for something else. */
export type TokenRefusalReason = "unknown" | "expired" | "rate" | "quota" | "scope";

/** What was done with a token, as figures count it. */
export interface TokenFigures {
  /** The token's name; undefined for what was no token of the server. */
  readonly name: string | undefined;
  /** Requests that it let in, and their bytes, as `TokenInfo` has them. */
  readonly requests: number;
  readonly received: number;
  readonly sent: number;
  /** Requests that were refused since the start of the server, by reason. */
  readonly refused: Readonly<Partial<Record<TokenRefusalReason, number>>>;
}

/** A token that was just made. */
export interface MadeToken {
  readonly token: TokenInfo;
  /** Shown this once: only its digest is kept. */
  readonly secret: string;
}

/** `module.server.tokens`: makes and revokes tokens of the running server. */
export interface ServerTokens {
  list(): readonly TokenInfo[];
  /** As many entries as there are tokens, and one for what is none. */
  figures(): readonly TokenFigures[];
  /** Makes a token; rejects with TOKEN_INVALID or TOKEN_EXISTS. `by`: who asks, for the record. */
  create(wanted: NewToken, options?: { readonly by?: string | undefined }): Promise<MadeToken>;
  /** Takes a token back, by name, id or secret: its open requests are cut, and the next one is refused. Rejects with TOKEN_UNKNOWN. */
  revoke(nameOrId: string, options?: { readonly by?: string | undefined }): Promise<TokenInfo>;
}
