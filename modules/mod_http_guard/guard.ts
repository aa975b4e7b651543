/** Checks the requests for one app in a fixed order. */
import { addressesOf, checkHeaderName, type RateLimit, rateOption, readHeaders } from "../../core/http/index.ts";
import type { HttpRequest, MiddlewareContext, Tokens } from "../../core/types.ts";
import { type Settings, settingsOf } from "./description.ts";
import { IdentityHeaders } from "./identity.ts";
import type { GuardEntry } from "./options.ts";
import type { Refusal } from "./refusal.ts";
import { SignIn } from "./sign_in.ts";
import type { Users } from "./users.ts";

/** Certificate authorities request these by plain HTTP (RFC 8555, 8.3). */
const PROOFS = "/.well-known/acme-challenge/";

/** Must not be sent over plain HTTP (RFC 6797, 7.2). */
const STRICT = "strict-transport-security";

const secureHeaders: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "SAMEORIGIN",
  "Referrer-Policy": "strict-origin-when-cross-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
};

export interface GuardContext {
  readonly app: string;
  /** Path of the entry in the options, for errors: `http_guard.notes`. */
  readonly option: string;
  readonly users: Users;
  readonly tokens: Tokens;
  /** Returns the previous limit if its values have not changed, so that its counts continue. */
  limit(rate: RateLimit["rate"]): RateLimit;
  /** Returns the HTTPS address of the request; undefined if there is none. */
  secureUrl(context: MiddlewareContext, request: HttpRequest): string | undefined;
}

export class Guard {
  readonly #context: GuardContext;
  readonly #entry: GuardEntry;
  readonly #identity: IdentityHeaders | undefined;
  readonly #headers: readonly (readonly [string, string])[];
  readonly #mayAsk: (address: string) => boolean;
  readonly #limit: RateLimit | undefined;
  readonly #signIn: SignIn | undefined;

  /** @throws {ModhostError} OPTION_INVALID */
  constructor(entry: GuardEntry, context: GuardContext) {
    const { option, app, users, tokens } = context;
    this.#entry = entry;
    this.#context = context;
    for (const name of entry.identity_headers) checkHeaderName(name, `${option}.identity_headers`);
    this.#identity = entry.identity_headers.length > 0 ? new IdentityHeaders(entry.identity_headers) : undefined;
    this.#headers = headersOf(entry, option);
    const isDenied = addressesOf(entry.deny, `${option}.deny`);
    const isAllowed = entry.allow.length > 0 ? addressesOf(entry.allow, `${option}.allow`) : () => true;
    this.#mayAsk = (address) => !isDenied(address) && isAllowed(address);
    this.#limit = limitOf(entry, context);
    const { token_scope: scope } = entry;
    const needsSignIn = entry.users.length > 0 || scope !== "" || this.#identity !== undefined;
    const names = new Set(entry.users);
    this.#signIn = needsSignIn ? new SignIn({ realm: app, names, users, scope, tokens }) : undefined;
  }

  get settings(): Settings {
    return settingsOf(
      this.#entry,
      this.#headers.map(([name]) => name),
    );
  }

  /**
   * Returns undefined if the request may continue. The README documents the order of the checks.
   */
  check(context: MiddlewareContext, request: HttpRequest): Refusal | undefined | Promise<Refusal | undefined> {
    const { https } = this.#entry;
    const user = this.#identity?.take(context, request);
    for (const [name, value] of this.#headers) {
      if (request.secure || name.toLowerCase() !== STRICT) context.set(name, value);
    }
    if (!this.#mayAsk(request.ip)) {
      return { reason: "address", status: 403, message: "Requests from your address are not allowed" };
    }
    if (https && !request.secure && !context.originalUrl.startsWith(PROOFS)) return this.#toHttps(context, request);
    const wait = this.#limit?.take(request.ip) ?? 0;
    if (wait > 0) {
      const headers = { retry_after: String(wait) };
      return { reason: "rate", status: 429, message: "Too many requests from your address", headers };
    }
    return user === undefined ? this.#signIn?.check(request) : undefined;
  }

  #toHttps(context: MiddlewareContext, request: HttpRequest): Refusal {
    const location = this.#context.secureUrl(context, request);
    return location === undefined
      ? { reason: "https", status: 403, message: "This is served only over HTTPS" }
      : { reason: "https", status: 308, message: "", headers: { location } };
  }
}

function limitOf({ rate, burst }: GuardEntry, { option, limit }: GuardContext): RateLimit | undefined {
  const read = rateOption(rate, burst, `${option}.rate`);
  return read && limit(read);
}

/** The option's own headers override the defaults. An empty text removes a header. */
function headersOf({ secure_headers, hsts, headers }: GuardEntry, option: string): [string, string][] {
  const own = readHeaders(headers, `${option}.headers`);
  const named = new Set(own.map(([name]) => name.toLowerCase()));
  const added = Object.entries({
    ...(secure_headers ? secureHeaders : {}),
    ...(hsts > 0 ? { "Strict-Transport-Security": `max-age=${Math.floor(hsts)}` } : {}),
  }).filter(([name]) => !named.has(name.toLowerCase()));
  return [...added, ...own.filter(([, value]) => value !== "")];
}
