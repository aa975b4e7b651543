/**
 * Signs requests to S3: AWS Signature Version 4, in the header. Without the thread pool, which is needed for files: a signature
 * takes some 30 µs. Backups sign by themselves (`mod_backup`): neither may use the other.
 */
import { createHash, createHmac } from "node:crypto";
import type { Credentials } from "./credentials.ts";

export interface Unsigned {
  readonly method: string;
  /** As it is in the URL, with its port where that is not the usual one. */
  readonly host: string;
  /** Encoded. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** By lower-case names. All of them are signed. */
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body, in hex. */
  readonly sha256: string;
}

export class Signer {
  readonly #region: string;
  #key: { readonly of: string; readonly bytes: Uint8Array } | undefined;

  constructor(region: string) {
    this.#region = region;
  }

  /** The query as it is in the URL, with its question mark, and all headers to be sent. */
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

  /** The key of a day. */
  #keyOf(secret: string, day: string): Uint8Array {
    const of = `${day} ${secret}`;
    if (this.#key?.of !== of) {
      const bytes = [day, this.#region, "s3", "aws4_request"].reduce(hmac, Buffer.from(`AWS4${secret}`));
      this.#key = { of, bytes };
    }
    return this.#key.bytes;
  }
}

/** As S3 has it: everything but letters, digits and `-_.~`. */
export const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

const hmac = (key: Uint8Array, text: string): Buffer<ArrayBuffer> => createHmac("sha256", key).update(text).digest();
