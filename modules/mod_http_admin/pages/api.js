/** The client of the Admin API that the dashboard's pages share. */

const meta = (/** @type {string} */ name) =>
  document.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? "";

/** Base path of the dashboard, such as `/admin`. */
export const base = meta("base");
/** Tells this page from others of its origin; empty for who has to sign in. */
export const pageKey = meta("page-key");

/** An answer that is no success, or none at all: then `code` is `unreachable`. */
export class ApiError extends Error {
  /**
   * @param {string} code of the table of errors
   * @param {string} message for the person at the screen
   * @param {unknown} [answer] what the server answered: of a change that was refused or has failed its record
   */
  constructor(code, message, answer) {
    super(message);
    this.code = code;
    this.answer = answer;
  }
}

/**
 * The address of an operation.
 * @param {string} path below `/admin/api`
 * @param {Record<string, unknown>} [query] values that are undefined are left out
 */
export function addressOf(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${base}/api${path}${text === "" ? "" : `?${text}`}`;
}

/**
 * An address for pictures, media and downloads, which take no headers of a page's own.
 * @param {string} path
 * @param {Record<string, unknown>} [query]
 */
export const linkTo = (path, query) => addressOf(path, { ...query, page_key: pageKey });

/**
 * The answer to a request, whatever its status.
 * @param {string} address
 * @param {RequestInit} [options]
 * @throws {ApiError} unreachable
 */
export async function ask(address, { headers, ...options } = {}) {
  try {
    return await fetch(address, {
      ...options,
      headers: { "X-Modhost-Page": pageKey, "X-Modhost-Admin": "1", ...headers },
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError("unreachable", "The server does not answer.");
  }
}

/**
 * Calls an operation, and gives its JSON.
 * @param {string} method
 * @param {string} path below `/admin/api`
 * @param {{ query?: Record<string, unknown>, body?: unknown, signal?: AbortSignal | undefined }} [input]
 * @returns {Promise<any>}
 * @throws {ApiError} for every answer from 400 on
 */
export async function call(method, path, { query, body, signal } = {}) {
  const options = { method, signal: signal ?? null };
  const sent =
    body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return answerOf(await ask(addressOf(path, query), { ...options, ...sent }));
}

/** @type {(path: string, query?: Record<string, unknown>, signal?: AbortSignal) => Promise<any>} */
export const get = (path, query, signal) => call("GET", path, { ...(query && { query }), signal });
/** @type {(path: string, body?: unknown, signal?: AbortSignal) => Promise<any>} */
export const post = (path, body = {}, signal) => call("POST", path, { body, signal });

/** @param {Response} response */
async function answerOf(response) {
  const answer = await response.json().catch(() => undefined);
  if (response.ok) return answer;
  // A change that came to nothing is answered with its record.
  const { code = "failed", message = `The server answered ${response.status}.` } = answer?.error ?? {};
  if (code === "page_key") announce("stale");
  if (code === "unauthorized") announce("signed-out");
  throw new ApiError(code, message, answer);
}

/**
 * Tells the frame that this page cannot go on as it is.
 * @param {"stale" | "signed-out"} what
 */
function announce(what) {
  window.dispatchEvent(new CustomEvent("modhost-page", { detail: what }));
}

/**
 * Signs in with a token, for this browser until it is closed.
 * @param {string} token
 */
export async function signIn(token) {
  const headers = { Authorization: `Bearer ${token}` };
  return answerOf(await ask(`${base}/session`, { method: "POST", headers }));
}

export async function signOut() {
  await ask(`${base}/session`, { method: "DELETE" });
}
