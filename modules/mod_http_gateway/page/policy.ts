/** The Content-Security-Policy of pages that the gateway makes itself: names in them are anybody's, and nothing of them runs. */
import { createHash } from "node:crypto";

const made = new Map<string, string>();

/** For a page with this one style, and pictures within it. */
export function pagePolicy(style: string): string {
  const known = made.get(style);
  if (known !== undefined) return known;
  const hash = createHash("sha256").update(style).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'`;
  made.set(style, policy);
  return policy;
}
