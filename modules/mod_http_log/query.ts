export type QueryMode = "none" | "redacted" | "full";

/** Parts of names whose values are hidden, and names that are hidden only as a whole. */
const secretPart = /token|secret|passw|passphrase|apikey|signature|session|credential|authoriz|jwt|cookie/i;
const secretWord = /^(?:key|auth|code|sig|pin|otp|pwd|pass|sid|hmac)$/i;

/** A query string as the log may show it; undefined when it may not, or there is none. */
export function shownQuery(query: string | undefined, mode: QueryMode): string | undefined {
  if (query === undefined || mode === "none") return undefined;
  return mode === "full" ? query : redact(query);
}

/** A Referer header as the log may show it: its query treated as one's own, the fragment left out. */
export function shownReferer(referer: string | undefined, mode: QueryMode): string | undefined {
  if (referer === undefined) return undefined;
  const end = referer.search(/[?#]/);
  if (end < 0) return referer;
  const query = referer[end] === "?" ? shownQuery(referer.slice(end + 1).split("#", 1)[0], mode) : undefined;
  return referer.slice(0, end) + (query === undefined ? "" : `?${query}`);
}

function redact(query: string): string {
  return query
    .split("&")
    .map((pair) => {
      const at = pair.indexOf("=");
      return at > 0 && isSecret(pair.slice(0, at)) ? `${pair.slice(0, at)}=***` : pair;
    })
    .join("&");
}

function isSecret(encoded: string): boolean {
  let name = encoded;
  try {
    if (encoded.includes("%")) name = decodeURIComponent(encoded);
  } catch {
    // Shown as it is, judged as it is.
  }
  if (secretPart.test(name)) return true;
  return name.split(/[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])/).some((word) => secretWord.test(word));
}
