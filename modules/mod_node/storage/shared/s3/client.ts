/** The client of an S3 object store. */
import { createHash, randomUUID } from "node:crypto";
import { failure } from "../../../util/errors.ts";
import { CredentialSource } from "./credentials.ts";
import { S3Fault } from "./faults.ts";
import type {
  ByteRange,
  Interruptible,
  ListOptions,
  ObjectFacts,
  ObjectStore,
  ObjectStream,
  Payload,
  PutNewResult,
  PutOptions,
  ReadOptions,
  StreamOptions,
} from "./objects.ts";
import { sha256Of } from "./payload.ts";
import { Reads, SHA256_HEADER } from "./reads.ts";
import { type Attempt, hex, isStatus, Requests } from "./requests.ts";
import { Retries } from "./retries.ts";
import { type Environment, type S3Address, type S3Settings, s3AddressOf } from "./settings.ts";
import { Transport } from "./transport.ts";
import { Uploads, xmlBody } from "./uploads.ts";
import { childrenOf, escaped, textOf, type XmlElement } from "./xml.ts";

/** Maximum milliseconds of a probe. */
const PROBE_MS = 5000;
/** Maximum number of keys in one delete request. */
const MAX_DELETED = 1000;

/**
 * Opens an object store without sending a request; `check` verifies it.
 * @throws NodeError that says what is wrong with the settings
 */
export function openS3(settings: S3Settings, environment: Environment = process.env): ObjectStore {
  const address = s3AddressOf(settings, environment);
  return new S3Objects(address, new CredentialSource(settings.credentials ?? {}, environment));
}

class S3Objects implements ObjectStore {
  readonly name: string;
  readonly metrics;
  readonly #address: S3Address;
  readonly #requests: Requests;
  readonly #reads: Reads;
  readonly #uploads: Uploads;

  constructor(address: S3Address, credentials: CredentialSource) {
    this.name = address.name;
    this.#address = address;
    this.#requests = new Requests(new Transport(address, credentials), new Retries(address.limits.patience));
    this.#reads = new Reads(address, this.#requests);
    this.#uploads = new Uploads(address, this.#requests, this.#reads);
    this.metrics = this.#requests.metrics;
  }

  putNew(key: string, payload: Payload, options: PutOptions = {}): Promise<PutNewResult> {
    return this.#put(key, payload, true, options);
  }

  async put(key: string, payload: Payload, options: PutOptions = {}): Promise<void> {
    await this.#put(key, payload, false, options);
  }

  read(key: string, range: ByteRange, options: ReadOptions = {}): Promise<Uint8Array | undefined> {
    return this.#reads.read(key, range, options);
  }

  stream(key: string, options: StreamOptions = {}): Promise<ObjectStream | undefined> {
    return this.#reads.stream(key, options);
  }

  head(key: string, options: Interruptible = {}): Promise<ObjectFacts | undefined> {
    return this.#reads.head(key, options);
  }

  async delete(keys: readonly string[], options: Interruptible = {}): Promise<void> {
    const [only, second] = keys;
    if (only !== undefined && second === undefined) await this.#deleteOne(only, options);
    else
      for (let at = 0; at < keys.length; at += MAX_DELETED)
        await this.#deleteMany(keys.slice(at, at + MAX_DELETED), options);
  }

  async *list(prefix: string, options: ListOptions = {}): AsyncGenerator<readonly ObjectFacts[], void, undefined> {
    const all = this.#address.prefix + prefix;
    const query: Record<string, string> = { "list-type": "2", prefix: all, "encoding-type": "url" };
    if (options.after !== undefined) query["start-after"] = this.#address.prefix + options.after;
    for (let more = true; more; ) {
      const page = await this.#requests.run("list", options, (attempt) =>
        attempt.xml({ method: "GET", key: "", query }),
      );
      const facts = childrenOf(page, "Contents").map((entry) => this.#listed(page, entry));
      if (facts.length > 0) yield facts;
      const next = textOf(page, "NextContinuationToken");
      more = textOf(page, "IsTruncated") === "true" && next !== undefined && next !== query["continuation-token"];
      if (next !== undefined) query["continuation-token"] = next;
    }
  }

  abandonUploads(isOver: (key: string) => boolean, options: Interruptible = {}): Promise<number> {
    return this.#uploads.abandonUploads(isOver, options);
  }

  async probe(): Promise<void> {
    const signal = AbortSignal.timeout(PROBE_MS);
    try {
      await this.#reads.probe({ signal });
    } catch (error) {
      if (!signal.aborted) throw error;
      throw failure("STORE_UNAVAILABLE", { reason: `${this.name} does not respond in time` }, error);
    }
  }

  async check(options: Interruptible = {}): Promise<void> {
    const key = `check/${randomUUID()}`;
    const first = Buffer.from("first");
    const second = Buffer.from("second");
    // A refused list request has a body with the reason; a HEAD response has none.
    const query = { "list-type": "2", prefix: this.#address.prefix, "max-keys": "1" };
    await this.#requests.run("list", options, (attempt) => attempt.xml({ method: "GET", key: "", query }));
    if ((await this.head(key, options)) !== undefined)
      throw failure("OBJECT_STORE_UNFIT", { reason: `${this.name} has an object under every key` });
    await this.putNew(key, first, options);
    try {
      const again = await this.putNew(key, second, options);
      const found = await this.read(key, { start: 1, length: 4 }, options);
      if (again !== "different" || found === undefined || Buffer.compare(found, first.subarray(1)) !== 0) {
        throw failure("OBJECT_STORE_UNFIT", {
          reason: `${this.name} does not honour conditional writes (If-None-Match: *): one host could write over what another has written. Use a store that does`,
        });
      }
    } finally {
      await this.delete([key], options);
    }
  }

  close(): Promise<void> {
    return this.#requests.transport.close();
  }

  async #put(key: string, payload: Payload, onlyNew: boolean, options: PutOptions): Promise<PutNewResult> {
    const sha256 = hex(options.sha256 ?? (await sha256Of(payload)));
    if (payload.length > this.#address.limits.part) return this.#uploads.put(key, payload, sha256, onlyNew, options);
    const compare = (attempt: Attempt) => this.#reads.compare(attempt, key, payload.length, sha256);
    const headers = {
      "content-type": "application/octet-stream",
      [SHA256_HEADER]: sha256,
      ...(onlyNew ? { "if-none-match": "*" } : {}),
    };
    return this.#requests.run("put", options, async (attempt) => {
      // A request without a response may have succeeded and need not be repeated then.
      const before = attempt.number > 1 && onlyNew ? await compare(attempt) : undefined;
      if (before !== undefined) return before;
      try {
        await attempt.sendAndDiscard({
          method: "PUT",
          key: this.#address.prefix + key,
          headers,
          body: { payload, sha256 },
        });
        return "written";
      } catch (error) {
        if (!onlyNew || !isStatus(error, 412)) throw error;
        return (await compare(attempt)) ?? goneMeanwhile(error);
      }
    });
  }

  #deleteOne(key: string, options: Interruptible): Promise<void> {
    return this.#requests.run("delete", options, async (attempt) => {
      const response = await attempt.find({ method: "DELETE", key: this.#address.prefix + key });
      await response?.drop();
    });
  }

  #deleteMany(keys: readonly string[], options: Interruptible): Promise<void> {
    const objects = keys.map((key) => `<Object><Key>${escaped(this.#address.prefix + key)}</Key></Object>`);
    const body = xmlBody(`<Delete><Quiet>true</Quiet>${objects.join("")}</Delete>`);
    const md5 = createHash("md5").update(body.payload).digest("base64");
    return this.#requests.run("delete", options, async (attempt) => {
      const headers = { "content-type": "application/xml", "content-md5": md5 };
      const response = await attempt.xml({ method: "POST", key: "", query: { delete: "" }, headers, body });
      const failed = childrenOf(response, "Error").filter((error) => textOf(error, "Code") !== "NoSuchKey");
      const [error] = failed;
      if (error === undefined) return;
      const code = textOf(error, "Code") ?? "";
      const status = code === "AccessDenied" ? 403 : 500;
      const said = `${textOf(error, "Key")}: ${code}: ${textOf(error, "Message") ?? ""}`;
      throw new S3Fault(`${failed.length} of ${keys.length} objects were not deleted: ${said}`, { status, code });
    });
  }

  #listed(page: XmlElement, entry: XmlElement): ObjectFacts {
    const text = textOf(entry, "Key") ?? "";
    const key = textOf(page, "EncodingType") === "url" ? decoded(text) : text;
    const bytes = Number(textOf(entry, "Size"));
    if (!key.startsWith(this.#address.prefix) || !Number.isSafeInteger(bytes)) {
      throw failure("OBJECT_STORE_FAULT", {
        reason: `${this.name}: its list contains the unrequested key ${key} with ${bytes} bytes`,
      });
    }
    const modified = Date.parse(textOf(entry, "LastModified") ?? "");
    return {
      key: key.slice(this.#address.prefix.length),
      bytes,
      etag: textOf(entry, "ETag") ?? "",
      modified: Number.isNaN(modified) ? 0 : modified,
    };
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}

/** The object existed and was deleted in the meantime: the caller writes it again. */
function goneMeanwhile(cause: unknown): never {
  throw new S3Fault((cause as Error).message, { code: "ConditionalRequestConflict", cause });
}
