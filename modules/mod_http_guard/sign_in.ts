/** Checks who sends a request. Any one of the sign-in methods of the app's guard is enough. */
import { readAuthorization } from "../../core/http/index.ts";
import type { HttpRequest, Tokens } from "../../core/types.ts";
import type { Refusal } from "./refusal.ts";
import type { Users } from "./users.ts";

export interface SignInOptions {
  readonly realm: string;
  /** Names that may sign in with a password; "*" allows everybody who has one. */
  readonly names: ReadonlySet<string>;
  readonly users: Users;
  /** The app whose scope a token must have; "" if tokens are not accepted. */
  readonly scope: string;
  readonly tokens: Tokens;
}

export class SignIn {
  readonly #options: SignInOptions;
  readonly #challenge: string;

  constructor(options: SignInOptions) {
    const { realm, names, scope } = options;
    this.#options = options;
    const ways = [
      ...(names.size > 0 ? [`Basic realm="${realm.replaceAll(/[^\w .*-]/g, "_")}", charset="UTF-8"`] : []),
      ...(scope === "" ? [] : ["Bearer"]),
    ];
    this.#challenge = ways.join(", ");
  }

  /** Returns undefined if the request may continue. */
  check(request: HttpRequest): Refusal | undefined | Promise<Refusal | undefined> {
    const { scope, names, tokens } = this.#options;
    const presented = readAuthorization(request.header("authorization"));
    if (presented?.scheme === "bearer" && scope !== "") {
      const found = tokens.authorize(request, { kind: "app", name: scope });
      return "status" in found ? { reason: "sign_in", ...found } : undefined;
    }
    if (presented?.scheme === "basic" && names.size > 0) return this.#byPassword(presented.credentials);
    return this.#unknown("This needs a sign-in");
  }

  async #byPassword(credentials: string): Promise<Refusal | undefined> {
    const { users, names } = this.#options;
    const text = Buffer.from(credentials, "base64").toString("utf8");
    const colon = text.indexOf(":");
    const name = text.slice(0, Math.max(colon, 0));
    const verdict = await users.check(name, text.slice(colon + 1));
    if (verdict === "busy") {
      const message = "Too many sign-ins at once";
      return { reason: "busy", status: 429, message, headers: { retry_after: "5" } };
    }
    // Checked after the password, so that the time does not reveal who has access.
    if (verdict === "right" && (names.has("*") || names.has(name))) return undefined;
    return this.#unknown("The name or the password is wrong");
  }

  #unknown(message: string): Refusal {
    const headers = this.#challenge === "" ? {} : { headers: { www_authenticate: this.#challenge } };
    // A client that cannot sign in gets 403 without a challenge.
    return { reason: "sign_in", status: this.#challenge === "" ? 403 : 401, message, ...headers };
  }
}
