/**
 * Prepares queries, addresses and other texts of requests for logs and spans: hides the values of
 * secrets.
 */
import { percentDecoded, withoutSecrets } from "./secret_text.ts";

export type QueryMode = "none" | "redacted" | "full";

/** The value of a name that contains one of these texts is hidden. */
const secretPart = /token|bearer|secret|passw|passphrase|apikey|signature|session|credential|authoriz|jwt|cookie/i;
/** These are also parts of ordinary words, so only a whole word of a name counts. */
const secretWord = /^(?:key|auth|code|sig|pin|otp|pwd|pass|sid|hmac)$/i;

/** Returns a query string for the log; undefined if it must not be logged, or there is none. */
export function shownQuery(query: string | undefined, mode: QueryMode): string | undefined {
  if (query === undefined || mode === "none") return undefined;
  return mode === "full" ? query : withoutSecrets(redact(query));
}

/**
 * Returns a Referer header for the log: its query is treated like the request's own, and the
 * fragment is removed.
 */
export function shownReferer(referer: string | undefined, mode: QueryMode): string | undefined {
  if (referer === undefined) return undefined;
  const end = referer.search(/[?#]/);
  if (end < 0) return shownText(referer, mode);
  const query = referer[end] === "?" ? shownQuery(referer.slice(end + 1).split("#", 1)[0], mode) : undefined;
  return shownText(referer.slice(0, end), mode) + (query === undefined ? "" : `?${query}`);
}

/**
 * Hides the values of name-value pairs, whatever separates them, and of texts that contain such
 * pairs in percent encoding.
 */
function redact(query: string): string {
  return query
    .split(/([&;])/)
    .map((pair) => {
      const at = pair.indexOf("=");
      if (at <= 0) return pair;
      const name = pair.slice(0, at);
      const value = pair.slice(at + 1);
      return isSecret(name) || holdsSecret(value) ? `${name}=***` : pair;
    })
    .join("");
}

/**
 * Returns any text for the log, with values hidden that follow a name which looks like that of a
 * secret.
 */
export function shownText(text: string, mode: QueryMode): string {
  if (mode === "full") return text;
  const bare = text.includes("@") ? withoutPasswords(text) : text;
  if (!bare.includes("=")) return withoutSecrets(bare);
  // The lookbehind avoids an attempt at each character of a long name.
  const shown = bare.replace(
    /(?<![^\s=&;,?#/"'()<>])([^\s=&;,?#/"'()<>]+)=([^\s&;,#"'()<>]*)/g,
    (pair, name: string, value: string) => (isSecret(name) || holdsSecret(value) ? `${name}=***` : pair),
  );
  return withoutSecrets(shown);
}

/** Hides names and passwords of URLs, as in `http://name:password@host`. */
function withoutPasswords(text: string): string {
  return text.replace(/:\/\/[^\s/?#]*@/g, "://***@");
}

/** Returns true for a URL, a cookie or a similar text that contains a pair to hide. */
function holdsSecret(value: string): boolean {
  if (!/[=%]/.test(value)) return false;
  const text = percentDecoded(value);
  if (text === undefined) return true;
  return text.matchAll(/(?<![^\s=&;,?#/])([^\s=&;,?#/]+)=/g).some(([, name = ""]) => isSecret(name));
}

function isSecret(encoded: string): boolean {
  const name = percentDecoded(encoded);
  if (name === undefined || secretPart.test(name)) return true;
  return name.split(/[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])/).some((word) => secretWord.test(word));
}

/**
 * Returns true for paths of the RPC. Their query strings contain keys, so they are never shown,
 * whatever options say.
 */
export const isRpcPath = (path: string): boolean => /^\/api\/v0(?:\/|$)/.test(path);
