/** Converts a secret of Kubo's config to an Authorization header. */

/**
 * Returns the header for a secret in one of Kubo's forms: `bearer:TOKEN`, `basic:USER:PASSWORD`,
 * `basic:BASE64-OF-BOTH`, or a token without a colon. Returns undefined for any other text.
 */
export function authorizationOf(secret: string): string | undefined {
  if (secret === "") return undefined;
  if (!secret.includes(":")) return `Bearer ${secret}`;
  const [, scheme, rest = ""] = /^(bearer|basic):(.*)$/s.exec(secret) ?? [];
  if (scheme === undefined) return undefined;
  if (scheme === "bearer") return `Bearer ${rest}`;
  return `Basic ${rest.includes(":") ? Buffer.from(rest).toString("base64") : rest}`;
}
