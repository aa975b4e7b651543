/**
 * The tokens of a server; all requests with a token are checked here. The tokens are stored in
 * `<data_path>/tokens.json`. The file is read when the first token is presented, and again when it
 * has changed: a request without a token costs nothing, and one with a token costs a hash.
 */
import { timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type {
  DeclaredTokenScope,
  HttpRequest,
  MadeToken,
  NewToken,
  PresentedToken,
  TokenForms,
  TokenInfo,
  TokenMetrics,
  TokenNeed,
  TokenRefusal,
  Tokens,
} from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import type { TokenBearer } from "../util/token_use.ts";
import { readAuthorization } from "../util/tokens.ts";
import { writeFileAtomic } from "../util/write_file_atomic.ts";
import { addToken, readTokenFile, removeToken, underLock } from "./file.ts";
import { lacking, missing, unknown } from "./refusals.ts";
import { ScopeKinds } from "./scopes.ts";
import { digestOf, idOf, isMeantAsToken } from "./secret.ts";
import { TokenAccount, type TokenAccountDeps } from "./token_account.ts";
import type { UsageRecord } from "./usage.ts";

/** Milliseconds between checks of the file, and of the quotas of open requests. */
const LOOK_TIME = 1000;
/** Milliseconds after which changed counters are saved. */
const KEEP_TIME = 30_000;

export interface TokenStoreDeps {
  /** Default: only the host's own kinds, and undeclared scopes are not reported. */
  readonly kinds?: ScopeKinds;
  /** Returns the path of the token file. */
  path(): string;
  readonly log: { error(format: string, ...values: unknown[]): void };
  /** Returns the milliseconds since 1970. Default: the system time. */
  now?(): number;
}

/** Compared if there is no such token, so that both cases take the same time. */
const nobody = Buffer.alloc(32);

export class TokenStore implements Tokens {
  readonly #deps: TokenStoreDeps;
  readonly #kinds: ScopeKinds;
  readonly #now: () => number;
  readonly #accountDeps: TokenAccountDeps;
  #accounts: ReadonlyMap<string, TokenAccount> | undefined;
  /** The state of the file when it was read. */
  #state = "";
  #looked = 0;
  #timer: NodeJS.Timeout | undefined;
  /** When counters were changed first after they were saved. */
  #changed: number | undefined;
  #keeping: Promise<void> | undefined;
  /** Number of requests with an unknown token. */
  #unknown = 0;

  constructor(deps: TokenStoreDeps) {
    this.#deps = deps;
    this.#kinds = deps.kinds ?? new ScopeKinds();
    this.#now = deps.now ?? Date.now;
    this.#accountDeps = {
      kinds: this.#kinds,
      now: this.#now,
      used: () => {
        this.#changed ??= performance.now();
      },
    };
  }

  identify(request: HttpRequest, forms: TokenForms = {}): PresentedToken | TokenRefusal | undefined {
    const bearer = request as unknown as TokenBearer;
    // A request that is identified twice is charged once.
    if (bearer.token !== undefined) return bearer.token;
    const secret = forms.secret ?? presented(request.header("authorization"), forms.basic === true);
    if (secret === undefined || !isMeantAsToken(secret)) return undefined;
    const account = this.#find(secret);
    if (account === undefined) return this.#isUnknown();
    const refusal = account.charge(Number(request.header("content-length") ?? 0) || 0);
    if (refusal !== undefined) return refusal;
    bearer.bear(account);
    this.#watch();
    return account;
  }

  authorize(request: HttpRequest, need: TokenNeed, forms?: TokenForms): PresentedToken | TokenRefusal {
    const found = this.identify(request, forms);
    if (found === undefined) return request.header("authorization") === undefined ? missing : this.#isUnknown();
    return "status" in found || found.allows(need) ? found : this.lacks(found, need);
  }

  lacks(token: PresentedToken, need: TokenNeed): TokenRefusal {
    this.#accounts?.get(token.id)?.usage.refuse("scope");
    return lacking(token, need, this.#kinds);
  }

  /** Returns the use of each token, and the number of requests with unknown tokens. */
  metrics(): readonly TokenMetrics[] {
    this.#look(false);
    const others = { name: undefined, requests: 0, received: 0, sent: 0, refused: { unknown: this.#unknown } };
    return [...(this.#accounts?.values() ?? []).map((account) => account.metrics), others];
  }

  /** @throws {ModhostError} TOKENS_UNREADABLE */
  list(): readonly TokenInfo[] {
    this.#look(true);
    // This reports an invalid file to the people who list the tokens.
    readTokenFile(this.#deps.path());
    return [...(this.#accounts?.values() ?? [])].map((account) => this.#infoOf(account));
  }

  /** Returns every form that a scope of a new token can have. */
  scopes(): readonly DeclaredTokenScope[] {
    return this.#kinds.forms();
  }

  /**
   * Returns the valid tokens by name, with those of their scopes that no loaded module declares.
   */
  undeclared(): ReadonlyMap<string, readonly string[]> {
    this.#look(false);
    const infos = [...(this.#accounts?.values() ?? [])]
      .filter(({ isExpired }) => !isExpired)
      .map((account) => this.#infoOf(account));
    return new Map(
      infos.flatMap(({ name, undeclared_scopes: scopes }) => (scopes === undefined ? [] : [[name, scopes]])),
    );
  }

  /** @throws {ModhostError} TOKEN_INVALID, TOKEN_EXISTS, TOKENS_UNREADABLE */
  async create(wanted: NewToken, by: string): Promise<MadeToken> {
    const { token, secret } = await addToken(this.#deps.path(), wanted, by, this.#kinds);
    this.#look(true);
    const account = this.#accounts?.get(token.id) ?? new TokenAccount(token, undefined, this.#accountDeps);
    return { token: this.#infoOf(account), secret };
  }

  /**
   * Revokes a token, and aborts its open requests. @throws {ModhostError} TOKEN_UNKNOWN,
   * TOKENS_UNREADABLE
   */
  async revoke(nameOrId: string): Promise<TokenInfo> {
    this.#look(true);
    const previous = this.#accounts;
    const removed = await removeToken(this.#deps.path(), nameOrId);
    this.#look(true);
    return this.#infoOf(previous?.get(removed.id) ?? new TokenAccount(removed, undefined, this.#accountDeps));
  }

  /** Saves the counters, and stops checking the file. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#keeping;
    if (this.#changed !== undefined) await this.#keep();
  }

  #infoOf({ info, scopes }: TokenAccount): TokenInfo {
    const undeclared = this.#deps.kinds?.undeclared(scopes) ?? [];
    return undeclared.length === 0 ? info : { ...info, undeclared_scopes: undeclared };
  }

  #isUnknown(): TokenRefusal {
    this.#unknown += 1;
    return unknown;
  }

  #find(secret: string): TokenAccount | undefined {
    this.#look(false);
    const id = idOf(secret);
    const account = id === undefined ? undefined : this.#accounts?.get(id);
    const isRight = timingSafeEqual(
      digestOf(secret),
      account?.digest.length === nobody.length ? account.digest : nobody,
    );
    return isRight ? account : undefined;
  }

  /** Reads the file again if it has changed; frequent calls check it once a second. */
  #look(now: boolean): void {
    const time = performance.now();
    if (!now && this.#accounts !== undefined && time - this.#looked < LOOK_TIME) return;
    this.#looked = time;
    const path = this.#deps.path();
    // The change time cannot be set back, and it also changes when an owner or mode is corrected.
    const { ino, size, ctimeNs } = statSync(path, { bigint: true, throwIfNoEntry: false }) ?? {};
    const state = `${ino} ${size} ${ctimeNs}`;
    if (this.#accounts !== undefined && state === this.#state) return;
    this.#state = state;
    const previous = this.#accounts;
    try {
      this.#accounts = this.#read(path, previous);
    } catch (error) {
      // The damaged part may have revoked a token, so all tokens are rejected.
      this.#deps.log.error("All tokens are rejected: %s", reasonOf(error));
      this.#accounts = new Map();
    }
    for (const [id, account] of previous ?? []) if (this.#accounts.get(id) !== account) account.cut();
  }

  #read(path: string, previous: ReadonlyMap<string, TokenAccount> | undefined): ReadonlyMap<string, TokenAccount> {
    const found = new Map<string, TokenAccount>();
    const saved = previous === undefined ? this.#readUsage() : {};
    for (const stored of readTokenFile(path)) {
      const before = previous?.get(stored.id);
      if (before !== undefined && JSON.stringify(before.stored) === JSON.stringify(stored)) {
        found.set(stored.id, before);
        continue;
      }
      try {
        found.set(stored.id, new TokenAccount(stored, before?.usage ?? saved[stored.id], this.#accountDeps));
      } catch (error) {
        this.#deps.log.error("The token %s in %s is not valid: %s", stored.name, path, reasonOf(error));
      }
    }
    return found;
  }

  /** Starts to check quotas and to save counters, while tokens are in use. */
  #watch(): void {
    this.#timer ??= setInterval(() => this.#tick(), LOOK_TIME).unref();
  }

  #tick(): void {
    this.#look(true);
    let isUsed = false;
    for (const account of this.#accounts?.values() ?? []) {
      account.watch();
      isUsed ||= account.active.size > 0;
    }
    if (this.#changed !== undefined && performance.now() - this.#changed >= KEEP_TIME)
      this.#keeping ??= this.#keep().finally(() => {
        this.#keeping = undefined;
      });
    if (isUsed || this.#changed !== undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  get #usagePath(): string {
    return join(dirname(this.#deps.path()), "tokens_usage.json");
  }

  async #keep(): Promise<void> {
    this.#changed = undefined;
    const path = this.#usagePath;
    try {
      await underLock(path, async () => {
        const previous = this.#readUsage();
        const all = [...(this.#accounts ?? [])];
        for (const [id, { usage }] of all) usage.join(previous[id]);
        const records = all.map(([id, { usage }]) => [id, usage.record()] as const);
        await writeFileAtomic(path, `${JSON.stringify({ version: 1, tokens: Object.fromEntries(records) })}\n`, 0o600);
        for (const [id, record] of records) this.#accounts?.get(id)?.usage.keep(record);
      });
    } catch (error) {
      this.#deps.log.error("Cannot save token usage: %s", reasonOf(error));
    }
  }

  /** Counters that are missing or damaged start at zero. */
  #readUsage(): Readonly<Record<string, UsageRecord>> {
    try {
      const { tokens } = JSON.parse(readFileSync(this.#usagePath, "utf8")) as { tokens?: Record<string, UsageRecord> };
      return tokens ?? {};
    } catch {
      return {};
    }
  }
}

/** Whether an Authorization header has a text that is meant as a token of a server. */
export function presentsToken(header: string | undefined): boolean {
  const secret = presented(header, true);
  return secret !== undefined && isMeantAsToken(secret);
}

/** Returns the secret in an Authorization header. */
function presented(header: string | undefined, withBasic: boolean): string | undefined {
  if (header === undefined) return undefined;
  const { scheme, credentials = "" } = readAuthorization(header) ?? {};
  if (scheme === "bearer") return credentials;
  if (scheme !== "basic" || !withBasic) return undefined;
  const decoded = Buffer.from(credentials, "base64").toString("utf8");
  return decoded.slice(decoded.indexOf(":") + 1);
}
