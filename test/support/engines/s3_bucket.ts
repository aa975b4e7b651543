/** The contents of a bucket of the tests' S3 server, and the rules of S3 for them. */
import { createHash } from "node:crypto";

export interface StoredObject {
  readonly body: Buffer;
  readonly etag: string;
  readonly modified: Date;
  /** Fields `x-amz-meta-…`. */
  readonly metadata: Readonly<Record<string, string>>;
}

interface Upload {
  readonly key: string;
  readonly id: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly parts: Map<number, { readonly body: Buffer; readonly etag: string }>;
}

/** An error response of S3. */
export class S3Error extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message = code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export interface Page {
  readonly keys: readonly string[];
  /** Whether there are more keys after the last one. */
  readonly truncated: boolean;
}

const md5 = (body: Buffer) => createHash("md5").update(body).digest("hex");

export class S3Bucket {
  readonly objects = new Map<string, StoredObject>();
  readonly uploads = new Map<string, Upload>();
  /** Minimum size of each part but the last. */
  minPart = 5 * 1024 * 1024;
  #nextUpload = 1;

  put(key: string, body: Buffer, metadata: Record<string, string>, onlyNew: boolean): StoredObject {
    return this.#store(key, onlyNew, { body, etag: `"${md5(body)}"`, modified: new Date(), metadata });
  }

  get(key: string): StoredObject {
    const found = this.objects.get(key);
    if (found === undefined) throw new S3Error(404, "NoSuchKey", "The specified key does not exist.");
    return found;
  }

  list(prefix: string, after: string, max: number): Page {
    const keys = [...this.objects.keys()]
      .filter((key) => key.startsWith(prefix) && compare(key, after) > 0)
      .sort(compare);
    return { keys: keys.slice(0, max), truncated: keys.length > max };
  }

  beginUpload(key: string, metadata: Record<string, string>): string {
    const id = `upload-${this.#nextUpload}`;
    this.#nextUpload += 1;
    this.uploads.set(id, { key, id, metadata, parts: new Map() });
    return id;
  }

  putPart(key: string, id: string, number: number, body: Buffer): string {
    if (!(number >= 1 && number <= 10_000)) throw new S3Error(400, "InvalidArgument");
    const etag = `"${md5(body)}"`;
    this.#upload(key, id).parts.set(number, { body, etag });
    return etag;
  }

  complete(
    key: string,
    id: string,
    parts: readonly { number: number; etag: string }[],
    onlyNew: boolean,
  ): StoredObject {
    const upload = this.#upload(key, id);
    if (parts.length === 0) throw new S3Error(400, "MalformedXML");
    const bodies = parts.map(({ number, etag }, index) => {
      if (number <= (parts[index - 1]?.number ?? 0)) throw new S3Error(400, "InvalidPartOrder");
      const part = upload.parts.get(number);
      if (part === undefined || part.etag !== etag) throw new S3Error(400, "InvalidPart");
      if (index < parts.length - 1 && part.body.length < this.minPart) throw new S3Error(400, "EntityTooSmall");
      return part.body;
    });
    const etag = `"${md5(Buffer.concat(parts.map((part) => Buffer.from(part.etag.slice(1, -1), "hex"))))}-${parts.length}"`;
    const { metadata } = upload;
    const stored = this.#store(key, onlyNew, { body: Buffer.concat(bodies), etag, modified: new Date(), metadata });
    this.uploads.delete(id);
    return stored;
  }

  abort(key: string, id: string): void {
    this.uploads.delete(this.#upload(key, id).id);
  }

  #upload(key: string, id: string): Upload {
    const found = this.uploads.get(id);
    if (found?.key !== key) throw new S3Error(404, "NoSuchUpload", "The specified multipart upload does not exist.");
    return found;
  }

  #store(key: string, onlyNew: boolean, object: StoredObject): StoredObject {
    if (onlyNew && this.objects.has(key)) {
      throw new S3Error(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold");
    }
    this.objects.set(key, object);
    return object;
  }
}

export const compare = (one: string, other: string): number => Buffer.compare(Buffer.from(one), Buffer.from(other));
