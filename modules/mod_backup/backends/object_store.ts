/** A repository in a bucket of an object store that is compatible with S3. */
import { setTimeout as delay } from "node:timers/promises";
import { printable } from "../../../core/net/http.ts";
import { type Backend, MAX_OBJECT_BYTES } from "./backend.ts";
import { type Credentials, encode, hashOf, signedHeaders } from "./signature.ts";

export interface ObjectStoreSettings {
  readonly bucket: string;
  /** Empty, or ends in a slash. */
  readonly prefix: string;
  readonly endpoint: URL;
  readonly region: string;
  readonly credentials: Credentials;
  /** Milliseconds before the second attempt; each further one takes twice as long. Default 250. */
  readonly retryMs?: number;
}

interface Sent {
  readonly method: "GET" | "PUT" | "DELETE";
  /** Name of the object; undefined for requests about the bucket. */
  readonly name?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

const RETRY_MS = 250;
const MAX_ATTEMPTS = 5;
/** Maximum time of one attempt in milliseconds. An object has a few megabytes. */
const MAX_ATTEMPT_TIME = 300_000;
const transient: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

export class ObjectStoreBackend implements Backend {
  readonly name: string;
  readonly #settings: ObjectStoreSettings;

  constructor(settings: ObjectStoreSettings) {
    this.#settings = settings;
    this.name = `s3://${settings.bucket}/${settings.prefix}`;
  }

  async read(name: string, signal?: AbortSignal): Promise<Buffer | undefined> {
    const response = await this.#send({ method: "GET", name, signal }, [200, 404]);
    return response.status === 404 ? undefined : response.body;
  }

  /** The hash of the body is signed, so the store refuses a body that was damaged on the way. */
  async write(name: string, body: Uint8Array, signal?: AbortSignal): Promise<void> {
    await this.#send({ method: "PUT", name, body, signal }, [200]);
  }

  async create(name: string, body: Uint8Array): Promise<boolean> {
    const headers = { "if-none-match": "*" };
    const { status } = await this.#send({ method: "PUT", name, body, headers }, [200, 409, 412]);
    if (status !== 200) {
      // An earlier attempt may have succeeded although its response was lost.
      return (await this.read(name))?.equals(body) === true;
    }
    return true;
  }

  async sync(): Promise<void> {}

  async remove(name: string): Promise<void> {
    await this.#send({ method: "DELETE", name }, [200, 204, 404]);
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncGenerator<string> {
    const whole = this.#settings.prefix + prefix;
    for (let next: string | undefined = ""; next !== undefined; ) {
      const from: Record<string, string> = next === "" ? {} : { "continuation-token": next };
      const query = { "list-type": "2", "encoding-type": "url", prefix: whole, ...from };
      const text = (await this.#send({ method: "GET", query, signal }, [200])).body.toString();
      for (const [, key = ""] of text.matchAll(/<Key>([^<]*)<\/Key>/g)) {
        yield decodeURIComponent(unescaped(key).replaceAll("+", " ")).slice(this.#settings.prefix.length);
      }
      const [, token] = /<NextContinuationToken>([^<]+)</.exec(text) ?? [];
      const before: string = next;
      next = token === undefined ? undefined : unescaped(token);
      if (next === before) throw new Error(`${this.name} returns the same page of its list repeatedly`);
    }
  }

  /** The store keeps no part of an object that was not sent completely. */
  async tidy(): Promise<void> {}

  /** @throws Error when the status is not in `expected` after all attempts */
  async #send(request: Sent, expected: readonly number[]): Promise<{ status: number; body: Buffer }> {
    const { retryMs = RETRY_MS } = this.#settings;
    for (let attempt = 1; ; attempt += 1) {
      request.signal?.throwIfAborted();
      const last = attempt === MAX_ATTEMPTS;
      try {
        const { status, body } = await this.#attempt(request);
        // A missing bucket must not look like an empty one.
        const isNoBucket = status === 404 && body.includes("NoSuchBucket");
        if (expected.includes(status) && !isNoBucket) return { status, body };
        if (last || !transient.has(status)) throw new RefusedRequest(this.#faultText(request, status, body.toString()));
      } catch (error) {
        request.signal?.throwIfAborted();
        if (last || error instanceof RefusedRequest) throw error;
      }
      await delay(retryMs * 2 ** (attempt - 1) * (1 + Math.random()), undefined, { signal: request.signal });
    }
  }

  async #attempt({ method, name, query = {}, body, headers = {}, signal }: Sent): Promise<{
    status: number;
    body: Buffer;
  }> {
    const { endpoint, bucket, prefix, region, credentials } = this.#settings;
    const url = new URL(endpoint);
    const path = [bucket, ...(name === undefined ? [] : `${prefix}${name}`.split("/"))].map(encode).join("/");
    url.pathname = `${url.pathname.replace(/\/$/, "")}/${path}`;
    url.search = Object.entries(query)
      .map(([key, value]) => `${encode(key)}=${encode(value)}`)
      .join("&");
    const bodyHash = hashOf(body ?? "");
    const signed = signedHeaders({ method, url, headers, bodyHash, region, at: new Date() }, credentials);
    const response = await fetch(url, {
      method,
      headers: signed,
      redirect: "manual",
      signal: AbortSignal.any([AbortSignal.timeout(MAX_ATTEMPT_TIME), ...(signal ? [signal] : [])]),
      ...(body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }),
    }).catch((error: Error) => {
      throw new Error(`${endpoint.origin} cannot be reached: ${reasonOf(error)}`, { cause: error });
    });
    return { status: response.status, body: await this.#bodyOf(response) };
  }

  /** @throws Error for a body longer than anything that a backup writes */
  async #bodyOf({ body }: Response): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    let length = 0;
    for await (const piece of body ?? []) {
      length += piece.length;
      if (length > MAX_OBJECT_BYTES)
        throw new RefusedRequest(`${this.name} sent a response of more than ${MAX_OBJECT_BYTES} bytes`);
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  }

  #faultText({ method, name = "" }: Sent, status: number, body: string): string {
    const field = (tag: string) => new RegExp(`<${tag}>([^<]*)<`).exec(body)?.[1];
    const why = [field("Code"), field("Message")].filter((part) => part !== undefined).join(": ");
    const remedy = remedies[status] === undefined ? "" : `; ${remedies[status]}`;
    const said = why === "" ? "" : ` (${printable(unescaped(why))})`;
    return `${method} ${this.name}${name} failed with ${status}${said}${remedy}`;
  }
}

/** Thrown for refusals that another attempt would not change. */
class RefusedRequest extends Error {}

const remedies: Readonly<Record<number, string>> = {
  301: "check backup_s3_region and backup_s3_endpoint",
  307: "check backup_s3_region and backup_s3_endpoint",
  400: "check backup_s3_region",
  403: "check backup_s3_key_id, backup_s3_secret, and what they may do with this bucket",
  404: "create the bucket first, or check its name and backup_s3_endpoint",
};

/** The cause says more than "fetch failed". */
const reasonOf = (error: Error): string => (error.cause instanceof Error ? error.cause.message : error.message);

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

const characterOf = (code: number): string => (code > 0x10ffff ? "\ufffd" : String.fromCodePoint(code));

const unescaped = (text: string): string =>
  text
    .replace(/&#(x?)([0-9a-f]+);/gi, (_, hex: string, digits: string) =>
      characterOf(Number.parseInt(digits, hex === "" ? 10 : 16)),
    )
    .replace(/&(amp|lt|gt|quot|apos);/g, (_, name: string) => entities[name] ?? "");
