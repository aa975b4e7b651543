/**
 * Signs requests to S3 with AWS Signature Version 4 in a header. Signing takes about 30 µs and does
 * not use the thread pool, which is needed for files. Backups have a signing function of their own
 * (`mod_backup`), because neither module may import the other.
 */
import { createHash, createHmac } from "node:crypto";
import type { Credentials } from "./credentials.ts";

export interface Unsigned {
  readonly method: string;
  /** The host as in the URL, with its port unless it is the default port. */
  readonly host: string;
  /** URL-encoded path. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Headers by lower-case name. All of them are signed. */
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body in hex. */
  readonly sha256: string;
}

export class Signer {
  readonly #region: string;
  #key: { readonly of: string; readonly bytes: Uint8Array } | undefined;

  constructor(region: string) {
    this.#region = region;
  }

  /** Returns the query of the URL with its question mark, and all headers to send. */
  sign(
    { method, host, path, query, headers, sha256 }: Unsigned,
    { accessKeyId, secretAccessKey, sessionToken }: Credentials,
    at = new Date(),
  ): { readonly search: string; readonly headers: Record<string, string> } {
    const date = at.toISOString().replace(/[:-]|\.\d{3}/g, "");
    const day = date.slice(0, 8);
    const all: Record<string, string> = { ...headers, host, "x-amz-content-sha256": sha256, "x-amz-date": date };
    if (sessionToken !== undefined) all["x-amz-security-token"] = sessionToken;
    const names = Object.keys(all).sort();
    const signed = names.join(";");
    const search = Object.entries(query)
      .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
      .sort()
      .join("&");
    const lines = names.map((name) => `${name}:${all[name]?.trim().replaceAll(/ +/g, " ")}\n`);
    const request = [method, path, search, lines.join(""), signed, sha256].join("\n");
    const scope = `${day}/${this.#region}/s3/aws4_request`;
    const hash = createHash("sha256").update(request).digest("hex");
    const signature = hmac(this.#keyOf(secretAccessKey, day), `AWS4-HMAC-SHA256\n${date}\n${scope}\n${hash}`).toString(
      "hex",
    );
    all.authorization = `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${signed}, Signature=${signature}`;
    return { search: search === "" ? "" : `?${search}`, headers: all };
  }

  /** Returns the signing key of a day. */
  #keyOf(secret: string, day: string): Uint8Array {
    const of = `${day} ${secret}`;
    if (this.#key?.of !== of) {
      const bytes = [day, this.#region, "s3", "aws4_request"].reduce(hmac, Buffer.from(`AWS4${secret}`));
      this.#key = { of, bytes };
    }
    return this.#key.bytes;
  }
}

/** Encodes text for a URL as S3 requires: everything except letters, digits and `-_.~`. */
export const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

const hmac = (key: Uint8Array, text: string): Buffer<ArrayBuffer> => createHmac("sha256", key).update(text).digest();
