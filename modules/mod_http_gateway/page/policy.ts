/**
 * The Content-Security-Policy of the gateway's own pages. They contain names from strangers, so no
 * script may run.
 */
import { createHash } from "node:crypto";

const made = new Map<string, string>();

/** Returns a policy for a page with this one style and embedded pictures. */
export function pagePolicy(style: string): string {
  const known = made.get(style);
  if (known !== undefined) return known;
  const hash = createHash("sha256").update(style).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'`;
  made.set(style, policy);
  return policy;
}
