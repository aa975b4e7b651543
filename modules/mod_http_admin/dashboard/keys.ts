/**
 * Distinguishes the dashboard from other pages, and a signed-in browser from a server that has
 * received its cookie.
 *
 * The dashboard's document contains a page key. Only a navigation of the whole tab gets that
 * document, so a script of another page can neither request nor read it. The page key is a second
 * barrier in addition to the dashboard's own origin.
 *
 * Cookies are shared by all ports of a host name: a browser sends a session's cookie to every
 * server there, and each of them can set one. So the cookie contains the token encrypted, and is
 * useless without the page key of the same session. Only the response to signing in contains that
 * key. The dashboard stores it in its origin's storage, which other ports do not share.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { makePrivateFolder, writeFileAtomic } from "../../../core/index.ts";
import type { HttpRequest } from "../../../core/types.ts";
import { AdminError } from "../errors.ts";

/**
 * A caller that a browser identifies by itself: by running on this machine, or by the cookie of a
 * session.
 */
export type Identity = "local" | `session ${string}`;

/** A browser that has signed in. */
export interface Session {
  readonly token: string;
  readonly identity: Identity;
}

const SECRET_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";
/** Query field of the page key, for requests that cannot have headers. */
export const KEY_FIELD = "page_key";

export class PageKeys {
  readonly #secret: Buffer;
  /** The name of the session's cookie, which differs between servers. */
  readonly cookie: string;

  constructor(secret: Buffer) {
    this.#secret = secret;
    this.cookie = `modhost_admin_${this.#text("cookie").slice(0, 8)}`;
  }

  /**
   * Stores the secret in a file, so that open pages keep working after a restart. If the file
   * cannot be written, the secret stays in memory.
   */
  static async in(file: string): Promise<PageKeys> {
    const stored = await readFile(file).catch(() => undefined);
    if (stored?.length === SECRET_BYTES) return new PageKeys(stored);
    const secret = randomBytes(SECRET_BYTES);
    await keep(file, secret).catch(() => undefined);
    return new PageKeys(secret);
  }

  /** Returns the page key of this caller. */
  of(identity: Identity): string {
    return this.#text(`page ${identity}`);
  }

  /**
   * @throws {AdminError} page_key: the page is not the dashboard, or was loaded by another caller
   */
  assert(request: HttpRequest, identity: Identity): void {
    if (!this.isGiven(request, identity)) throw this.refusal();
  }

  /** Whether the request contains the page key of this caller. */
  isGiven(request: HttpRequest, identity: Identity): boolean {
    const given = Buffer.from(request.header("x-modhost-page") ?? keyInQuery(request) ?? "");
    const right = Buffer.from(this.of(identity));
    return given.length === right.length && timingSafeEqual(given, right);
  }

  refusal(): AdminError {
    return new AdminError("page_key", "Only the pages of the dashboard may request this: load the page again");
  }

  /**
   * Encrypts a token for the session's cookie. The value differs each time, and only this server
   * can read it.
   */
  seal(token: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#digest("session"), nonce);
    return Buffer.concat([nonce, cipher.update(token), cipher.final(), cipher.getAuthTag()]).toString("base64url");
  }

  /**
   * Returns the sessions in the request's cookies. Other servers of this host name can send stored
   * cookies again, but cannot create valid ones.
   */
  sessions(request: HttpRequest): Session[] {
    const pairs = (request.header("cookie") ?? "").split(";").map((pair) => pair.trim());
    return pairs.flatMap((pair) => {
      if (!pair.startsWith(`${this.cookie}=`)) return [];
      const sealed = pair.slice(this.cookie.length + 1);
      const token = this.#open(sealed);
      return token === undefined ? [] : [{ token, identity: `session ${sealed}` }];
    });
  }

  #open(sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, "base64url");
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
    try {
      const decipher = createDecipheriv(CIPHER, this.#digest("session"), bytes.subarray(0, NONCE_BYTES));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
      return Buffer.concat([text, decipher.final()]).toString();
    } catch {
      return undefined;
    }
  }

  #text(of: string): string {
    return this.#digest(of).toString("base64url");
  }

  #digest(of: string): Buffer {
    return createHmac("sha256", this.#secret).update(of).digest();
  }
}

/** Requests for pictures, media and downloads cannot have the page's headers. */
function keyInQuery({ method, url }: HttpRequest): string | undefined {
  if (method !== "GET" && method !== "HEAD") return undefined;
  return new URLSearchParams(url.query ?? "").get(KEY_FIELD) ?? undefined;
}

/** Whether a browser has sent the request, for a page or for a typed address. */
export function isOfBrowser(request: HttpRequest): boolean {
  return ["sec-fetch-site", "origin", "referer"].some((name) => request.header(name) !== undefined);
}

/**
 * Whether a person typed the address or opened it from outside of the browser, in a tab. No page
 * can send such a request.
 */
export function isTyped(request: HttpRequest): boolean {
  const { method } = request;
  return method === "GET" && request.header("sec-fetch-site") === "none" && isDocument(request);
}

/**
 * Whether the request is a navigation of a whole tab: no script can read the response, and no frame
 * shows it.
 */
export function isNavigation(request: HttpRequest): boolean {
  return request.header("sec-fetch-mode") === "navigate" && isDocument(request);
}

/** Whether a page of another origin, such as an app's, has sent the request. */
export function isFromElsewhere(request: HttpRequest): boolean {
  return !["none", "same-origin"].includes(request.header("sec-fetch-site") ?? "none");
}

/** Whether the client accepts HTML, as browsers do. */
export function wantsPage(request: HttpRequest): boolean {
  return /\btext\/html\b/.test(request.header("accept") ?? "");
}

const isDocument = (request: HttpRequest) => request.header("sec-fetch-dest") === "document";

async function keep(file: string, secret: Uint8Array): Promise<void> {
  makePrivateFolder(dirname(file));
  await writeFileAtomic(file, secret, 0o600);
}
