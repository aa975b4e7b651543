/** Signed requests of ACME (RFC 8555, 6.2): JSON Web Signatures of an account key on P-256. */
import { createHash, createHmac, createPublicKey, type KeyObject, sign } from "node:crypto";

export interface Jws {
  readonly protected: string;
  readonly payload: string;
  readonly signature: string;
}

const base64url = (data: string | Buffer) => Buffer.from(data).toString("base64url");

/**
 * Returns the public part of an account key, with the fields in the order that its thumbprint
 * requires.
 */
export function jwkOf(key: KeyObject): Record<"crv" | "kty" | "x" | "y", string> {
  const { x = "", y = "" } = createPublicKey(key as never).export({ format: "jwk" }) as { x?: string; y?: string };
  return { crv: "P-256", kty: "EC", x, y };
}

/** Returns the thumbprint of a key (RFC 7638). */
export function thumbprint(key: KeyObject): string {
  return createHash("sha256")
    .update(JSON.stringify(jwkOf(key)))
    .digest("base64url");
}

/** Returns a signed request. Without `payload` it is a request that only reads (POST-as-GET). */
export function signed(key: KeyObject, header: Readonly<Record<string, unknown>>, payload: unknown): Jws {
  const head = base64url(JSON.stringify({ alg: "ES256", ...header }));
  const body = payload === undefined ? "" : base64url(JSON.stringify(payload));
  const signature = sign("sha256", Buffer.from(`${head}.${body}`), { key, dsaEncoding: "ieee-p1363" });
  return { protected: head, payload: body, signature: base64url(signature) };
}

/** Binds an account to one that the authority already knows (RFC 8555, 7.3.4). */
export function externalBinding(account: KeyObject, eab: { id: string; key: string }, url: string): Jws {
  const head = base64url(JSON.stringify({ alg: "HS256", kid: eab.id, url }));
  const body = base64url(JSON.stringify(jwkOf(account)));
  const secret = Buffer.from(eab.key, "base64url");
  const signature = createHmac("sha256", secret).update(`${head}.${body}`).digest("base64url");
  return { protected: head, payload: body, signature };
}
