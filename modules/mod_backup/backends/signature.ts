/**
 * Signs requests to S3-compatible object stores (Signature Version 4) in their headers. The node
 * has its own implementation, because it is a library that uses nothing of the host, and hosts
 * without a node make backups too. Tests compare both with the examples of the specification.
 */
import { createHash, createHmac } from "node:crypto";

export interface Credentials {
  readonly keyId: string;
  readonly secret: string;
}

export interface SignedRequest {
  readonly method: string;
  /** Path and query are percent-encoded, as they are sent. */
  readonly url: URL;
  /** Headers to sign in addition to those that are added here. */
  readonly headers?: Readonly<Record<string, string>>;
  /** SHA-256 of the body, in hexadecimal. */
  readonly bodyHash: string;
  readonly region: string;
  /** Default: `s3`. */
  readonly service?: string;
  readonly at: Date;
}

export const hashOf = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex");

/**
 * Returns the given headers together with those that sign the request. `Host` is the host of the
 * URL.
 */
export function signedHeaders(request: SignedRequest, { keyId, secret }: Credentials): Record<string, string> {
  const { method, url, bodyHash, region, service = "s3", at } = request;
  const time = at.toISOString().replace(/[-:]|\.\d+/g, "");
  const date = time.slice(0, 8);
  const own = { "x-amz-date": time, ...(service === "s3" ? { "x-amz-content-sha256": bodyHash } : {}) };
  const sent: Record<string, string> = { ...own };
  for (const [name, value] of Object.entries(request.headers ?? {})) sent[name.toLowerCase()] = value;
  const signed = Object.entries({ ...sent, host: url.host }).sort(([one], [other]) => (one < other ? -1 : 1));
  const names = signed.map(([name]) => name).join(";");
  const lines = signed.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, " ")}\n`).join("");
  const canonical = [method, url.pathname, canonicalQuery(url), lines, names, bodyHash].join("\n");
  const scope = `${date}/${region}/${service}/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", time, scope, hashOf(canonical)].join("\n");
  const key = [date, region, service, "aws4_request"].reduce<string | Buffer>(
    (key, part) => hmac(key, part),
    `AWS4${secret}`,
  );
  const signature = hmac(key, text).toString("hex");
  const authorization = `AWS4-HMAC-SHA256 Credential=${keyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  return { ...sent, authorization };
}

const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** Percent-encodes everything except the unreserved characters of RFC 3986. */
export const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (found) => `%${found.charCodeAt(0).toString(16).toUpperCase()}`);

function canonicalQuery({ searchParams }: URL): string {
  const pairs = [...searchParams].map(([name, value]) => `${encode(name)}=${encode(value)}`);
  return pairs.sort().join("&");
}
