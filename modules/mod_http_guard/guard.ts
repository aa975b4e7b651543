/** What the requests for one app have to meet, in a fixed order. */
import { addressesOf, checkHeaderName, type RateLimit, rateOption, readHeaders } from "../../core/http/index.ts";
import type { HttpRequest, MiddlewareContext, Tokens } from "../../core/types.ts";
import { type Settings, settingsOf } from "./description.ts";
import { IdentityHeaders } from "./identity.ts";
import type { GuardEntry } from "./options.ts";
import type { Refusal } from "./refusal.ts";
import { SignIn } from "./sign_in.ts";
import type { Users } from "./users.ts";

/** RFC 8555, 8.3: authorities ask by plain HTTP. */
const PROOFS = "/.well-known/acme-challenge/";

/** By plain HTTP it is not to be sent: RFC 6797, 7.2. */
const STRICT = "strict-transport-security";

const secureHeaders: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "SAMEORIGIN",
  "Referrer-Policy": "strict-origin-when-cross-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
};

export interface GuardPlace {
  readonly app: string;
  /** Where the entry stands, for errors: `http_guard.notes`. */
  readonly option: string;
  readonly users: Users;
  readonly tokens: Tokens;
  /** A limit goes on where it is the same as before. */
  limit(rate: RateLimit["rate"]): RateLimit;
  /** The address of the request under HTTPS; undefined where it has none. */
  secureUrl(context: MiddlewareContext, request: HttpRequest): string | undefined;
}

export class Guard {
  readonly #place: GuardPlace;
  readonly #entry: GuardEntry;
  readonly #identity: IdentityHeaders | undefined;
  readonly #headers: readonly (readonly [string, string])[];
  readonly #mayAsk: (address: string) => boolean;
  readonly #limit: RateLimit | undefined;
  readonly #signIn: SignIn | undefined;

  /** @throws {ModhostError} OPTION_INVALID */
  constructor(entry: GuardEntry, place: GuardPlace) {
    const { option, app, users, tokens } = place;
    this.#entry = entry;
    this.#place = place;
    for (const name of entry.identity_headers) checkHeaderName(name, `${option}.identity_headers`);
    this.#identity = entry.identity_headers.length > 0 ? new IdentityHeaders(entry.identity_headers) : undefined;
    this.#headers = headersOf(entry, option);
    const isDenied = addressesOf(entry.deny, `${option}.deny`);
    const isAllowed = entry.allow.length > 0 ? addressesOf(entry.allow, `${option}.allow`) : () => true;
    this.#mayAsk = (address) => !isDenied(address) && isAllowed(address);
    this.#limit = limitOf(entry, place);
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

  /** Undefined: the request may go on. Its order is that of the README. */
  check(context: MiddlewareContext, request: HttpRequest): Refusal | undefined | Promise<Refusal | undefined> {
    const { https } = this.#entry;
    const user = this.#identity?.take(context, request);
    for (const [name, value] of this.#headers) {
      if (request.secure || name.toLowerCase() !== STRICT) context.set(name, value);
    }
    if (!this.#mayAsk(request.ip)) {
      return { reason: "address", status: 403, message: "This is not for the address that you ask from" };
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
    const location = this.#place.secureUrl(context, request);
    return location === undefined
      ? { reason: "https", status: 403, message: "This is served by HTTPS alone" }
      : { reason: "https", status: 308, message: "", headers: { location } };
  }
}

function limitOf({ rate, burst }: GuardEntry, { option, limit }: GuardPlace): RateLimit | undefined {
  const read = rateOption(rate, burst, `${option}.rate`);
  return read && limit(read);
}

/** What the option adds goes before what it stands for; an empty text takes a header away. */
function headersOf({ secure_headers, hsts, headers }: GuardEntry, option: string): [string, string][] {
  const own = readHeaders(headers, `${option}.headers`);
  const named = new Set(own.map(([name]) => name.toLowerCase()));
  const added = Object.entries({
    ...(secure_headers ? secureHeaders : {}),
    ...(hsts > 0 ? { "Strict-Transport-Security": `max-age=${Math.floor(hsts)}` } : {}),
  }).filter(([name]) => !named.has(name.toLowerCase()));
  return [...added, ...own.filter(([, value]) => value !== "")];
}
