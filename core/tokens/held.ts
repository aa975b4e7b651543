/** A token of the file, as it is asked for and counted. */
import type { PresentedToken, TokenFigures, TokenInfo, TokenNeed, TokenRefusal, TokenRefusalReason } from "../types.ts";
import { Bucket } from "../util/rate_limit.ts";
import type { CountingToken, TokenUse } from "../util/token_use.ts";
import { expired, overQuota, tooFast } from "./refusals.ts";
import { covers, parseScope } from "./scopes.ts";
import { type StoredToken, type TokenTerms, termsOf } from "./spec.ts";
import { secondsToMidnight, Usage, type UsageRecord } from "./usage.ts";

export interface HeldDeps {
  now(): number;
  /** A request has begun, or has ended. */
  used(): void;
}

export class HeldToken implements CountingToken {
  readonly stored: StoredToken;
  readonly digest: Buffer;
  readonly usage: Usage;
  readonly active = new Set<TokenUse>();
  readonly #terms: TokenTerms;
  readonly #bucket: Bucket | undefined;
  readonly #deps: HeldDeps;

  /** @throws {ModhostError} TOKEN_INVALID for what somebody has written into the file */
  constructor(stored: StoredToken, usage: Usage | UsageRecord | undefined, deps: HeldDeps) {
    this.stored = stored;
    this.digest = Buffer.from(String(stored.sha256), "hex");
    this.#terms = termsOf(stored);
    this.#deps = deps;
    this.usage = usage instanceof Usage ? usage : new Usage(usage);
    const { rate } = this.#terms;
    this.#bucket = rate && new Bucket(rate, deps.now());
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

  get figures(): TokenFigures {
    const { own, refused } = this.usage;
    return { name: this.name, ...own, refused };
  }

  get isExpired(): boolean {
    return this.#deps.now() >= this.#terms.expires;
  }

  allows(need: TokenNeed): boolean {
    return this.#terms.scopes.some((scope) => covers(scope, need));
  }

  /** Charges a request, whose body has so many bytes if that is known; gives the reason where it may not be answered. */
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

  /** Ends what is under way once the token is expired or over a quota. */
  watch(): void {
    if (this.active.size === 0) return;
    if (this.isExpired || this.#overQuota(this.#deps.now(), 0) !== undefined) this.cut();
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

/** A token of another thread's store, which counts what is done with it. */
export function heldElsewhere(token: Pick<PresentedToken, "id" | "name" | "scopes">): CountingToken {
  const scopes = token.scopes.map(parseScope).filter((scope) => scope !== undefined);
  const allows = (need: TokenNeed) => scopes.some((scope) => covers(scope, need));
  return { ...token, allows, begin: () => undefined, end: () => undefined };
}
