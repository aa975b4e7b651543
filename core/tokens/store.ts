/**
 * The tokens of a server: the one place where a request with a token is let in or refused. They are in
 * `<data_path>/tokens.json`, which is read with the first token that somebody presents, and again when it has changed: a
 * request without a token costs nothing, one with a token a hash.
 */
import { timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type {
  HttpRequest,
  MadeToken,
  NewToken,
  PresentedToken,
  TokenFigures,
  TokenForms,
  TokenInfo,
  TokenNeed,
  TokenRefusal,
  Tokens,
} from "../types.ts";
import { reasonOf } from "../util/errors.ts";
import type { TokenBearer } from "../util/token_use.ts";
import { readAuthorization } from "../util/tokens.ts";
import { writeFileAtomic } from "../util/write_file_atomic.ts";
import { addToken, readTokenFile, removeToken, underLock } from "./file.ts";
import { HeldToken } from "./held.ts";
import { lacking, missing, unknown } from "./refusals.ts";
import { digestOf, idOf, isMeantAsToken } from "./secret.ts";
import type { UsageRecord } from "./usage.ts";

/** Milliseconds after which the file is looked at again, and requests that are under way are measured. */
const LOOK_TIME = 1000;
/** Milliseconds after which counters that have changed are written. */
const KEEP_TIME = 30_000;

export interface TokenStoreDeps {
  /** The file of the tokens. */
  path(): string;
  readonly log: { error(format: string, ...values: unknown[]): void };
  /** Milliseconds since 1970. Default: the time of the system. */
  now?(): number;
}

/** Compared in place of a token that there is not, so that both take the same time. */
const nobody = Buffer.alloc(32);

export class TokenStore implements Tokens {
  readonly #deps: TokenStoreDeps;
  readonly #now: () => number;
  #held: ReadonlyMap<string, HeldToken> | undefined;
  /** The file as it was read. */
  #state = "";
  #looked = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Counters have changed since then. */
  #changed: number | undefined;
  #keeping: Promise<void> | undefined;
  /** Requests with what is no token. */
  #unknown = 0;

  constructor(deps: TokenStoreDeps) {
    this.#deps = deps;
    this.#now = deps.now ?? Date.now;
  }

  identify(request: HttpRequest, forms: TokenForms = {}): PresentedToken | TokenRefusal | undefined {
    const bearer = request as unknown as TokenBearer;
    // Asked for twice, it is charged once.
    if (bearer.token !== undefined) return bearer.token;
    const secret = forms.secret ?? presented(request.headers.authorization, forms.basic === true);
    if (secret === undefined || !isMeantAsToken(secret)) return undefined;
    const held = this.#find(secret);
    if (held === undefined) return this.#isUnknown();
    const refusal = held.charge(Number(request.headers.content_length ?? 0) || 0);
    if (refusal !== undefined) return refusal;
    bearer.bear(held);
    this.#watch();
    return held;
  }

  authorize(request: HttpRequest, need: TokenNeed, forms?: TokenForms): PresentedToken | TokenRefusal {
    const found = this.identify(request, forms);
    if (found === undefined) return request.headers.authorization === undefined ? missing : this.#isUnknown();
    return "status" in found || found.allows(need) ? found : this.lacks(found, need);
  }

  lacks(token: PresentedToken, need: TokenNeed): TokenRefusal {
    this.#held?.get(token.id)?.usage.refuse("scope");
    return lacking(token, need);
  }

  /** What was done with each token, and how often what was presented is none. */
  figures(): readonly TokenFigures[] {
    this.#look(false);
    const others = { name: undefined, requests: 0, received: 0, sent: 0, refused: { unknown: this.#unknown } };
    return [...(this.#held?.values() ?? []).map((held) => held.figures), others];
  }

  /** @throws {ModhostError} TOKENS_UNREADABLE */
  list(): readonly TokenInfo[] {
    this.#look(true);
    // What is wrong with the file is told to those who look at the list.
    readTokenFile(this.#deps.path());
    return [...(this.#held?.values() ?? [])].map(({ info }) => info);
  }

  /** @throws {ModhostError} TOKEN_INVALID, TOKEN_EXISTS, TOKENS_UNREADABLE */
  async create(wanted: NewToken, by: string): Promise<MadeToken> {
    const { token, secret } = await addToken(this.#deps.path(), wanted, by);
    this.#look(true);
    const { info } = this.#held?.get(token.id) ?? new HeldToken(token, undefined, this.#heldDeps);
    return { token: info, secret };
  }

  /** Takes a token back, and ends what is under way with it. @throws {ModhostError} TOKEN_UNKNOWN, TOKENS_UNREADABLE */
  async revoke(nameOrId: string): Promise<TokenInfo> {
    this.#look(true);
    const former = this.#held;
    const removed = await removeToken(this.#deps.path(), nameOrId);
    this.#look(true);
    return (former?.get(removed.id) ?? new HeldToken(removed, undefined, this.#heldDeps)).info;
  }

  /** Writes the counters, and looks at the file no more. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#keeping;
    if (this.#changed !== undefined) await this.#keep();
  }

  #isUnknown(): TokenRefusal {
    this.#unknown += 1;
    return unknown;
  }

  #find(secret: string): HeldToken | undefined {
    this.#look(false);
    const id = idOf(secret);
    const held = id === undefined ? undefined : this.#held?.get(id);
    const isRight = timingSafeEqual(digestOf(secret), held?.digest.length === nobody.length ? held.digest : nobody);
    return isRight ? held : undefined;
  }

  /** Reads the file if it is another one than before; asked often, it looks once a second. */
  #look(now: boolean): void {
    const time = performance.now();
    if (!now && this.#held !== undefined && time - this.#looked < LOOK_TIME) return;
    this.#looked = time;
    const path = this.#deps.path();
    // The time of change, which nobody sets back, and which an owner or a mode that is mended moves as well.
    const { ino, size, ctimeNs } = statSync(path, { bigint: true, throwIfNoEntry: false }) ?? {};
    const state = `${ino} ${size} ${ctimeNs}`;
    if (this.#held !== undefined && state === this.#state) return;
    this.#state = state;
    const former = this.#held;
    try {
      this.#held = this.#read(path, former);
    } catch (error) {
      // Whoever has damaged it may have taken one back: nobody is let in.
      this.#deps.log.error("No token is good any more: %s", reasonOf(error));
      this.#held = new Map();
    }
    for (const [id, held] of former ?? []) if (this.#held.get(id) !== held) held.cut();
  }

  #read(path: string, former: ReadonlyMap<string, HeldToken> | undefined): ReadonlyMap<string, HeldToken> {
    const found = new Map<string, HeldToken>();
    const kept = former === undefined ? this.#readUsage() : {};
    for (const stored of readTokenFile(path)) {
      const before = former?.get(stored.id);
      if (before !== undefined && JSON.stringify(before.stored) === JSON.stringify(stored)) {
        found.set(stored.id, before);
        continue;
      }
      try {
        found.set(stored.id, new HeldToken(stored, before?.usage ?? kept[stored.id], this.#heldDeps));
      } catch (error) {
        this.#deps.log.error("The token %s of %s is not good: %s", stored.name, path, reasonOf(error));
      }
    }
    return found;
  }

  readonly #heldDeps = {
    now: () => this.#now(),
    used: () => {
      this.#changed ??= performance.now();
    },
  };

  /** While tokens are in use: what is under way is measured, and counters are kept. */
  #watch(): void {
    this.#timer ??= setInterval(() => this.#tick(), LOOK_TIME).unref();
  }

  #tick(): void {
    this.#look(true);
    let isUsed = false;
    for (const held of this.#held?.values() ?? []) {
      held.watch();
      isUsed ||= held.active.size > 0;
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
        const former = this.#readUsage();
        const all = [...(this.#held ?? [])];
        for (const [id, { usage }] of all) usage.join(former[id]);
        const records = all.map(([id, { usage }]) => [id, usage.record()] as const);
        await writeFileAtomic(path, `${JSON.stringify({ version: 1, tokens: Object.fromEntries(records) })}\n`, 0o600);
        for (const [id, record] of records) this.#held?.get(id)?.usage.keep(record);
      });
    } catch (error) {
      this.#deps.log.error("What was used of tokens cannot be kept: %s", reasonOf(error));
    }
  }

  /** Counters of what is missing, or damaged, begin at zero. */
  #readUsage(): Readonly<Record<string, UsageRecord>> {
    try {
      const { tokens } = JSON.parse(readFileSync(this.#usagePath, "utf8")) as { tokens?: Record<string, UsageRecord> };
      return tokens ?? {};
    } catch {
      return {};
    }
  }
}

/** The secret in an Authorization header. */
function presented(header: string | undefined, withBasic: boolean): string | undefined {
  if (header === undefined) return undefined;
  const { scheme, credentials = "" } = readAuthorization(header) ?? {};
  if (scheme === "bearer") return credentials;
  if (scheme !== "basic" || !withBasic) return undefined;
  const decoded = Buffer.from(credentials, "base64").toString("utf8");
  return decoded.slice(decoded.indexOf(":") + 1);
}
