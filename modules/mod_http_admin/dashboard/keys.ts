/**
 * Page keys: what tells the dashboard from other pages of the same origin. Apps and gateways may show pages of anybody
 * there; a browser lets them ask whatever the dashboard may ask, with the same cookies. The key stands in the dashboard's
 * document alone, which is given to a navigation of the whole tab: a script of another page can neither send such a
 * request nor look into its answer.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { makePrivateFolder, writeFileAtomic } from "../../../core/index.ts";
import type { HttpRequest } from "../../../core/types.ts";
import { AdminError } from "../errors.ts";

/** A caller whom a browser names by itself: by being on this machine, or by the cookie of a session. */
export type Identity = "local" | `session ${string}`;

const SECRET_BYTES = 32;
/** Of a query, where a request can have no headers of the page's own. */
export const KEY_FIELD = "page_key";

export class PageKeys {
  readonly #secret: Buffer;
  /** Of the session's cookie: its own for each server, as cookies know no ports. */
  readonly cookie: string;

  constructor(secret: Buffer) {
    this.#secret = secret;
    this.cookie = `modhost_admin_${this.#digest("cookie").slice(0, 8)}`;
  }

  /** Keeps its secret in a file, so that pages that are open go on after a restart; where none can be written, in memory. */
  static async in(file: string): Promise<PageKeys> {
    const kept = await readFile(file).catch(() => undefined);
    if (kept?.length === SECRET_BYTES) return new PageKeys(kept);
    const secret = randomBytes(SECRET_BYTES);
    await keep(file, secret).catch(() => undefined);
    return new PageKeys(secret);
  }

  /** The key of the document that is given to this caller. */
  of(identity: Identity): string {
    return this.#digest(`page ${identity}`);
  }

  /** @throws {AdminError} page_key: the page is not the dashboard, or was loaded by another caller */
  assert(request: HttpRequest, identity: Identity): void {
    const given = Buffer.from(request.headers.x_modhost_page ?? keyInQuery(request) ?? "");
    const right = Buffer.from(this.of(identity));
    if (given.length === right.length && timingSafeEqual(given, right)) return;
    throw new AdminError("page_key", "Only the pages of the dashboard may ask this: load the page again");
  }

  /** Of the cookie that says to pages outside of the dashboard that this browser is signed in: anybody can make it. */
  get mark(): string {
    return `${this.cookie}_is_here`;
  }

  /** The token that signed this browser in. */
  session(request: HttpRequest): string | undefined {
    return cookieOf(request, this.cookie);
  }

  hasMark(request: HttpRequest): boolean {
    return cookieOf(request, this.mark) !== undefined;
  }

  #digest(text: string): string {
    return createHmac("sha256", this.#secret).update(text).digest("base64url");
  }
}

/** Pictures, media and downloads are asked for without headers of the page's own. */
function keyInQuery({ method, url }: HttpRequest): string | undefined {
  if (method !== "GET" && method !== "HEAD") return undefined;
  return new URLSearchParams(url.query ?? "").get(KEY_FIELD) ?? undefined;
}

function cookieOf({ headers }: HttpRequest, name: string): string | undefined {
  const cookies = (headers.cookie ?? "").split(";").map((pair) => pair.trim());
  const found = cookies.find((pair) => pair.startsWith(`${name}=`));
  return found === undefined ? undefined : decoded(found.slice(name.length + 1));
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Does a browser send it, for a page or for whoever typed an address? */
export function isOfBrowser({ headers }: HttpRequest): boolean {
  return headers.sec_fetch_site !== undefined || headers.origin !== undefined || headers.referer !== undefined;
}

/** Was the address typed, or opened from outside of the browser, for a tab of its own? No page can send that. */
export function isTyped({ headers, method }: HttpRequest): boolean {
  return method === "GET" && headers.sec_fetch_site === "none" && headers.sec_fetch_dest === "document";
}

/** A navigation of a whole tab: no script can read its answer, and no frame shows it. */
export function isNavigation({ headers }: HttpRequest): boolean {
  return headers.sec_fetch_mode === "navigate" && headers.sec_fetch_dest === "document";
}

async function keep(file: string, secret: Uint8Array): Promise<void> {
  makePrivateFolder(dirname(file));
  await writeFileAtomic(file, secret, 0o600);
}
