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
  if (end < 0) return shownText(referer, mode);
  const query = referer[end] === "?" ? shownQuery(referer.slice(end + 1).split("#", 1)[0], mode) : undefined;
  return shownText(referer.slice(0, end), mode) + (query === undefined ? "" : `?${query}`);
}

/** Hides the values of pairs, whatever they are separated by, and texts that hold such pairs in percent encoding. */
function redact(query: string): string {
  return query
    .split(/([&;])/)
    .map((pair) => {
      const at = pair.indexOf("=");
      if (at <= 0) return pair;
      const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
      return isSecret(name) || holdsSecret(value) ? `${name}=***` : pair;
    })
    .join("");
}

/** Any text as the log may show it: what follows a name that looks like that of a secret is hidden. */
export function shownText(text: string, mode: QueryMode): string {
  if (mode === "full" || !text.includes("=")) return text;
  return text.replace(/([^\s=&;,?#/"'()<>]+)=([^\s&;,#"'()<>]*)/g, (pair, name: string, value: string) =>
    isSecret(name) || holdsSecret(value) ? `${name}=***` : pair,
  );
}

/** A URL, a cookie or the like with a pair of its own that is to be hidden. */
function holdsSecret(value: string): boolean {
  if (!/[=%]/.test(value)) return false;
  const text = decoded(value);
  return (
    [...text.matchAll(/([^\s=&;,?#/]+)=/g)].some(([, name = ""]) => isSecret(name)) ||
    (text !== value && holdsSecret(text))
  );
}

function decoded(text: string): string {
  try {
    return text.includes("%") ? decodeURIComponent(text) : text;
  } catch {
    return text;
  }
}

function isSecret(encoded: string): boolean {
  const name = decoded(encoded);
  if (secretPart.test(name)) return true;
  return name.split(/[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])/).some((word) => secretWord.test(word));
}
