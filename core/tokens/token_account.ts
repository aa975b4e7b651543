/** A token of the file, which checks and counts its use. */
import type { PresentedToken, TokenInfo, TokenMetrics, TokenNeed, TokenRefusal, TokenRefusalReason } from "../types.ts";
import { Bucket } from "../util/rate_limit.ts";
import type { CountingToken, TokenUse } from "../util/token_use.ts";
import { expired, overQuota, tooFast } from "./refusals.ts";
import { type ScopeKinds, TokenScopes } from "./scopes.ts";
import { type StoredToken, type TokenTerms, termsOf } from "./spec.ts";
import { secondsToMidnight, Usage, type UsageRecord } from "./usage.ts";

export interface TokenAccountDeps {
  readonly kinds: ScopeKinds;
  now(): number;
  /** Called when a request has started or ended. */
  used(): void;
}

export class TokenAccount implements CountingToken {
  readonly stored: StoredToken;
  readonly digest: Buffer;
  readonly usage: Usage;
  readonly active = new Set<TokenUse>();
  readonly moved: (() => void) | undefined;
  readonly #terms: TokenTerms;
  readonly #scopes: TokenScopes;
  readonly #bucket: Bucket | undefined;
  readonly #deps: TokenAccountDeps;
  #isCutting = false;
  #hasExpired = false;

  /** @throws {ModhostError} TOKEN_INVALID for an invalid entry in the file */
  constructor(stored: StoredToken, usage: Usage | UsageRecord | undefined, deps: TokenAccountDeps) {
    this.stored = stored;
    this.digest = Buffer.from(String(stored.sha256), "hex");
    this.#terms = termsOf(stored);
    this.#scopes = new TokenScopes(stored.scopes, deps.kinds);
    this.#deps = deps;
    this.usage = usage instanceof Usage ? usage : new Usage(usage);
    const { rate } = this.#terms;
    this.#bucket = rate && new Bucket(rate, deps.now());
    const { received, sent } = this.#terms;
    if (received !== undefined || sent !== undefined) this.moved = () => this.#moved();
  }

  get id(): string {
    return this.stored.id;
  }

  get name(): string {
    return this.stored.name;
  }

  get scopes(): readonly string[] {
    return this.stored.scopes;
  }

  get info(): TokenInfo {
    const { sha256, ...shown } = this.stored;
    const { lastUsed, requests, received, sent } = this.usage;
    return { ...shown, is_expired: this.isExpired, last_used: lastUsed, requests, received, sent };
  }

  get metrics(): TokenMetrics {
    const { own, refused } = this.usage;
    return { name: this.name, ...own, refused };
  }

  /**
   * Whether the token has expired. An expired token stays expired, even if the clock is set back.
   */
  get isExpired(): boolean {
    this.#hasExpired ||= this.#deps.now() >= this.#terms.expires;
    return this.#hasExpired;
  }

  allows(need: TokenNeed): boolean {
    return this.#scopes.allow(need);
  }

  /**
   * Charges a request with a body of `length` bytes (0 if that is not known). Returns the refusal
   * if it is not allowed.
   */
  charge(length: number): TokenRefusal | undefined {
    const refuse = (reason: TokenRefusalReason, refusal: TokenRefusal) => {
      this.usage.refuse(reason);
      return refusal;
    };
    if (this.isExpired) return refuse("expired", expired(this.stored));
    const now = this.#deps.now();
    const over = this.#overQuota(now, length);
    if (over !== undefined) return refuse("quota", over);
    const seconds = this.#bucket?.take(now) ?? 0;
    if (seconds > 0) return refuse("rate", tooFast(this.stored, seconds));
    this.usage.used(now);
    this.#deps.used();
    return undefined;
  }

  begin(use: TokenUse): void {
    this.active.add(use);
  }

  end(use: TokenUse): void {
    if (!this.active.delete(use)) return;
    this.usage.moved(use.received, use.sent, this.#deps.now());
    this.#deps.used();
  }

  /** Aborts open requests once the token has expired or is over a quota. */
  watch(): void {
    if (this.active.size === 0) return;
    if (this.isExpired || this.#overQuota(this.#deps.now(), 0) !== undefined) this.cut();
  }

  /**
   * Checks the quota after the current code has run, so that the code that transfers bytes is not
   * interrupted.
   */
  #moved(): void {
    if (this.#isCutting || this.#overQuota(this.#deps.now(), 0) === undefined) return;
    this.#isCutting = true;
    setImmediate(() => {
      this.#isCutting = false;
      this.watch();
    });
  }

  cut(): void {
    for (const use of [...this.active]) use.revoke();
  }

  #overQuota(now: number, length: number): TokenRefusal | undefined {
    const { received, sent } = this.#terms;
    for (const [direction, field, quota] of [
      ["received", "bytes_in", received],
      ["sent", "bytes_out", sent],
    ] as const) {
      if (quota === undefined) continue;
      let spent = this.usage.spent(direction, quota.daily, now);
      for (const use of this.active) spent += use[direction];
      const isOver = spent >= quota.bytes || (direction === "received" && spent + length > quota.bytes);
      if (isOver)
        return overQuota(
          this.name,
          field,
          String(this.stored[field]),
          quota.daily ? secondsToMidnight(now) : undefined,
        );
    }
    return undefined;
  }
}

/** Returns a token of another thread's store; that store counts its use. */
export function remoteToken(token: Pick<PresentedToken, "id" | "name" | "scopes">, kinds: ScopeKinds): CountingToken {
  const scopes = new TokenScopes(token.scopes, kinds);
  return { ...token, allows: (need) => scopes.allow(need), begin: () => undefined, end: () => undefined };
}
