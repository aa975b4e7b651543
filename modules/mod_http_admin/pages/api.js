/** The client of the Admin API that the dashboard's pages share. */

const meta = (/** @type {string} */ name) =>
  document.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? "";

/** Base path of the dashboard, such as `/admin`. */
export const base = meta("base");
/**
 * Whether a page of another origin has opened this one, which then has to open its address again
 * itself.
 */
export const opensAgain = meta("again") !== "";
/**
 * Whether this browser has a valid session cookie. The session's key is in the storage of this
 * origin, which no other port shares.
 */
const isSignedIn = meta("signed-in") !== "";
const KEY = "modhost-page-key";
const given = isSignedIn ? window.localStorage.getItem(KEY) : null;
/** The page key of this caller; empty until the user signs in. */
export const pageKey = given ?? meta("page-key");

/** A response with an error status, or no response at all; then `code` is `unreachable`. */
export class ApiError extends Error {
  /**
   * @param {string} code a code from the table of errors
   * @param {string} message a text for the user
   * @param {unknown} [body] the parsed body of the response; for a change that was refused or has
   * failed, this is the record of the change
   */
  constructor(code, message, body) {
    super(message);
    this.code = code;
    this.answer = body;
  }
}

/**
 * Returns the URL of an operation.
 * @param {string} path below `/admin/api`
 * @param {Record<string, unknown>} [query] undefined values are left out
 */
export function addressOf(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${base}/api${path}${text === "" ? "" : `?${text}`}`;
}

/**
 * Returns a URL for pictures, media and downloads, whose requests cannot have the page's headers.
 * @param {string} path
 * @param {Record<string, unknown>} [query]
 */
export const linkTo = (path, query) => addressOf(path, { ...query, page_key: pageKey });

/**
 * Resolves to the response to a request, whatever its status.
 * @param {string} address
 * @param {RequestInit} [options]
 * @throws {ApiError} with code `unreachable` if the server does not respond
 */
export async function ask(address, { headers, ...options } = {}) {
  try {
    return await fetch(address, {
      ...options,
      headers: { "X-Modhost-Page": pageKey, "X-Modhost-Admin": "1", ...headers },
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError("unreachable", "The server does not respond.");
  }
}

/**
 * Calls an operation and returns its JSON.
 * @param {string} method
 * @param {string} path below `/admin/api`
 * @param {{ query?: Record<string, unknown>, body?: unknown, signal?: AbortSignal | undefined }}
 * [input]
 * @returns {Promise<any>}
 * @throws {ApiError} if the status is 400 or higher
 */
export async function call(method, path, { query, body, signal } = {}) {
  const options = { method, signal: signal ?? null };
  const sent =
    body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return resultOf(await ask(addressOf(path, query), { ...options, ...sent }));
}

/** @type {(path: string, query?: Record<string, unknown>, signal?: AbortSignal) => Promise<any>} */
export const get = (path, query, signal) => call("GET", path, { ...(query && { query }), signal });
/** @type {(path: string, body?: unknown, signal?: AbortSignal) => Promise<any>} */
export const post = (path, body = {}, signal) => call("POST", path, { body, signal });

/** @param {Response} response */
async function resultOf(response) {
  const body = await response.json().catch(() => undefined);
  if (response.ok) return body;
  // The response to a failed change is the record of the change.
  const { code = "failed", message = `The server responded with ${response.status}.` } = body?.error ?? {};
  if (code === "page_key") {
    // The stored key belongs to another session: the page continues without it, or asks for a
    // token.
    window.localStorage.removeItem(KEY);
    announce("stale");
  }
  if (code === "unauthorized") announce("signed-out");
  throw new ApiError(code, message, body);
}

/**
 * Notifies the frame that this page cannot continue as it is.
 * @param {"stale" | "signed-out"} what
 */
function announce(what) {
  window.dispatchEvent(new CustomEvent("modhost-page", { detail: what }));
}

/**
 * Signs in with a token. The browser stays signed in until it is closed.
 * @param {string} token
 */
export async function signIn(token) {
  const headers = { Authorization: `Bearer ${token}` };
  const { page_key } = await resultOf(await ask(`${base}/session`, { method: "POST", headers }));
  window.localStorage.setItem(KEY, page_key);
}

export async function signOut() {
  await ask(`${base}/session`, { method: "DELETE" });
  window.localStorage.removeItem(KEY);
}
