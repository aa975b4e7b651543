/**
 * Uploads of objects that are too large for one request. They are sent in parts, which become the
 * object at the end or are removed.
 */
import { createHash } from "node:crypto";
import { mapConcurrent } from "../../../util/async/map_concurrent.ts";
import { S3Fault } from "./faults.ts";
import type { Interruptible, Payload, PutNewResult } from "./objects.ts";
import { sha256Of, slice } from "./payload.ts";
import { type Reads, SHA256_HEADER } from "./reads.ts";
import { hex, isStatus, type Requests } from "./requests.ts";
import type { S3Address } from "./settings.ts";
import { childrenOf, escaped, textOf, type XmlElement } from "./xml.ts";

/** The maximum of every store. */
const MAX_PARTS = 10_000;
const PARTS_AT_ONCE = 2;
/** Milliseconds for removing the parts after a failure. */
const ABANDON_WITHIN = 10_000;

export class Uploads {
  readonly #address: S3Address;
  readonly #requests: Requests;
  readonly #reads: Reads;

  constructor(address: S3Address, requests: Requests, reads: Reads) {
    this.#address = address;
    this.#requests = requests;
    this.#reads = reads;
  }

  /**
   * Uploads an object. `sha256` is the hash of the payload. With `onlyNew`, an existing object is
   * not changed.
   */
  async put(
    key: string,
    payload: Payload,
    sha256: string,
    onlyNew: boolean,
    options: Interruptible,
  ): Promise<PutNewResult> {
    const existing = onlyNew ? await this.#compare(key, payload, sha256, options) : undefined;
    if (existing !== undefined) return existing;
    const uploadId = await this.#begin(key, sha256, options);
    try {
      const etags = await Array.fromAsync(
        mapConcurrent(this.#partsOf(payload), PARTS_AT_ONCE, ({ part, number }) =>
          this.#send(key, uploadId, number, part, options),
        ),
      );
      return await this.#complete(key, payload, sha256, uploadId, etags, onlyNew, options);
    } catch (error) {
      await this.#abort(key, uploadId, AbortSignal.timeout(ABANDON_WITHIN)).catch(() => {});
      throw error;
    }
  }

  /** Removes the parts of these uploads and returns the number of uploads. */
  async abandonUploads(isMeant: (key: string) => boolean, { signal }: Interruptible): Promise<number> {
    let count = 0;
    for (let markers: Record<string, string> | undefined = {}; markers !== undefined; ) {
      // The query has no prefix, because MinIO takes it for the whole name of one object.
      const query = { uploads: "", ...markers };
      const page = await this.#requests.run("list", { signal }, (attempt) =>
        attempt.xml({ method: "GET", key: "", query }),
      );
      for (const upload of childrenOf(page, "Upload")) {
        const name = textOf(upload, "Key") ?? "";
        const key = name.slice(this.#address.prefix.length);
        if (!name.startsWith(this.#address.prefix) || !isMeant(key)) continue;
        await this.#abort(key, textOf(upload, "UploadId") ?? "", signal);
        count += 1;
      }
      markers = nextMarkers(page);
    }
    return count;
  }

  *#partsOf(payload: Payload): Generator<{ part: Payload; number: number }> {
    const size = Math.max(this.#address.limits.part, Math.ceil(payload.length / MAX_PARTS));
    for (let at = 0, number = 1; at < payload.length; at += size, number += 1) {
      yield { part: slice(payload, at, Math.min(size, payload.length - at)), number };
    }
  }

  #compare(key: string, payload: Payload, sha256: string, options: Interruptible) {
    return this.#requests.run("head", options, (attempt) => this.#reads.compare(attempt, key, payload.length, sha256));
  }

  #begin(key: string, sha256: string, options: Interruptible): Promise<string> {
    return this.#requests.run("upload", options, async (attempt) => {
      const headers = { [SHA256_HEADER]: sha256, "content-type": "application/octet-stream" };
      const begun = await attempt.xml({ ...this.#post(key), query: { uploads: "" }, headers });
      const id = textOf(begun, "UploadId");
      if (!id)
        throw new S3Fault(`POST ${this.#address.name}${key}?uploads: the response names no upload`, {
          code: "BrokenAnswer",
        });
      return id;
    });
  }

  async #send(
    key: string,
    uploadId: string,
    number: number,
    payload: Payload,
    options: Interruptible,
  ): Promise<string> {
    const sha256 = hex(await sha256Of(payload));
    return this.#requests.run("part", options, async (attempt) => {
      const query = { partNumber: String(number), uploadId };
      const { headers } = await attempt.sendAndDiscard({
        ...this.#post(key),
        method: "PUT",
        query,
        body: { payload, sha256 },
      });
      return headers.etag ?? "";
    });
  }

  #complete(
    key: string,
    payload: Payload,
    sha256: string,
    uploadId: string,
    etags: readonly string[],
    onlyNew: boolean,
    options: Interruptible,
  ): Promise<PutNewResult> {
    const parts = etags.map(
      (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`,
    );
    const body = xmlBody(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`);
    return this.#requests.run("upload", options, async (attempt) => {
      try {
        const headers = { "content-type": "application/xml", ...(onlyNew ? { "if-none-match": "*" } : {}) };
        const response = await attempt.xml({ ...this.#post(key), query: { uploadId }, headers, body });
        // The store sends the status before it knows whether the request succeeds.
        if (response.name === "Error") throw this.#failed(key, response);
        return "written";
      } catch (error) {
        // If the upload no longer exists, an earlier attempt may have completed it.
        if (!isStatus(error, 412) && !(isStatus(error, 404) && attempt.number > 1)) throw error;
        const existing = await this.#reads.compare(attempt, key, payload.length, sha256);
        if (existing === undefined) throw error;
        await this.#abort(key, uploadId, options.signal);
        return existing;
      }
    });
  }

  #failed(key: string, response: XmlElement): S3Fault {
    const code = textOf(response, "Code") ?? "";
    const status = code === "PreconditionFailed" ? 412 : code === "NoSuchUpload" ? 404 : 500;
    return new S3Fault(`POST ${this.#address.name}${key}: ${code}: ${textOf(response, "Message") ?? ""}`, {
      status,
      code,
    });
  }

  async #abort(key: string, uploadId: string, signal: AbortSignal | undefined): Promise<void> {
    await this.#requests.run("upload", { signal }, async (attempt) => {
      const response = await attempt.find({ ...this.#post(key), method: "DELETE", query: { uploadId } });
      await response?.drop();
    });
  }

  #post(key: string) {
    return { method: "POST", key: this.#address.prefix + key } as const;
  }
}

/** Returns a request body with XML instead of an object. */
export function xmlBody(text: string): { payload: Uint8Array; sha256: string } {
  const payload = Buffer.from(text);
  return { payload, sha256: createHash("sha256").update(payload).digest("hex") };
}

function nextMarkers(page: XmlElement): Record<string, string> | undefined {
  if (textOf(page, "IsTruncated") !== "true") return undefined;
  const key = textOf(page, "NextKeyMarker");
  const upload = textOf(page, "NextUploadIdMarker");
  return key && upload ? { "key-marker": key, "upload-id-marker": upload } : undefined;
}
