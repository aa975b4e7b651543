/** Paths of content, however people write them. */

/** `ipfs://CID/a`, a bare CID and a whole path are the same. */
export function contentPath(given: string): string {
  const text = given.trim().replace(/^(ip[fn]s):\/\//, "/$1/");
  return text.startsWith("/") ? text : `/ipfs/${text}`;
}
