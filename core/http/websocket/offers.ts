/** Parses the extensions that clients offer for a websocket (RFC 6455, 9.1; RFC 7692). */

const offer = /\s*([^\s;,="]+)((?:\s*;\s*[^\s;,="]+(?:\s*=\s*(?:[^\s;,="]+|"[^"]*"))?)*)\s*(?:,|$)/y;
const parameter = /;\s*([^\s;,="]+)(?:\s*=\s*(?:([^\s;,="]+)|"([^"]*)"))?/g;

/** Parameters of `permessage-deflate`, and the values that they take. */
const parameters: ReadonlyMap<string, RegExp> = new Map([
  ["server_no_context_takeover", /^$/],
  ["client_no_context_takeover", /^$/],
  ["server_max_window_bits", /^(?:[89]|1[0-5])$/],
  ["client_max_window_bits", /^(?:|[89]|1[0-5])$/],
]);

/**
 * Returns the offers of `permessage-deflate` that can be accepted: a server declines the others,
 * and may accept a later one (RFC 7692, 7.1). Returns a malformed header unchanged, and undefined
 * when no offer is left.
 */
export function usableOffers(header: string): string | undefined {
  const usable: string[] = [];
  offer.lastIndex = 0;
  while (offer.lastIndex < header.length) {
    const [text, name, listed = ""] = offer.exec(header) ?? [];
    if (text === undefined) return header;
    if (name === "permessage-deflate" && areKnown(listed)) usable.push(`${name}${listed}`);
  }
  return usable.length === 0 ? undefined : usable.join(", ");
}

function areKnown(listed: string): boolean {
  const names = new Set<string>();
  for (const [, name = "", plain, quoted] of listed.matchAll(parameter)) {
    if (names.has(name) || parameters.get(name)?.test(plain ?? quoted ?? "") !== true) return false;
    names.add(name);
  }
  return true;
}
