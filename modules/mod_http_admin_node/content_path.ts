/** Normalizes paths of content, which people write in several ways. */

/** Treats `ipfs://CID/a`, a bare CID and a full path as equal. */
export function contentPath(given: string): string {
  const text = given.trim().replace(/^(ip[fn]s):\/\//, "/$1/");
  return text.startsWith("/") ? text : `/ipfs/${text}`;
}
