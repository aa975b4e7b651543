/**
 * An S3 server in memory, for machines without a real one. It supports the part of S3 that modhost
 * uses: it verifies signatures and hashes of bodies, and supports conditional writes, ranges and
 * multipart uploads. It rejects all other requests.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { childrenOf, parseXml, textOf } from "#node/storage/shared/s3/xml.ts";
import { S3Bucket, S3Error } from "./s3_bucket.ts";
import { refusalOf, type S3User } from "./s3_signature.ts";

interface Call {
  readonly bucket: S3Bucket;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

interface Reply {
  readonly status: number;
  readonly headers?: Record<string, string | number>;
  readonly body?: string | Buffer;
}

const REGION = "us-east-1";

export class S3Server implements AsyncDisposable {
  readonly users: S3User[] = [{ accessKeyId: "test", secretAccessKey: "test-secret" }];
  /** Buckets by name. */
  readonly buckets = new Map<string, S3Bucket>();
  /** Milliseconds since 1970. */
  clock: () => number = Date.now;
  /** Ignores `If-None-Match`, as some stores do. */
  ignoresIfNoneMatch = false;
  /** Requests such as `GET /bucket/key`, in order. */
  readonly requests: string[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(...buckets: readonly string[]): Promise<S3Server> {
    const http = createServer((request, response) => void server.#serve(request, response));
    const server = new S3Server(http);
    for (const name of buckets) server.buckets.set(name, new S3Bucket());
    await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The server does not keep the test process alive. */
  unref(): void {
    this.#server.unref();
    this.#server.on("connection", (socket) => socket.unref());
  }

  bucket(name: string): S3Bucket {
    const found = this.buckets.get(name);
    if (found === undefined) throw new S3Error(404, "NoSuchBucket", "The specified bucket does not exist");
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((done) => this.#server.close(done));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push(`${request.method} ${request.url}`);
    try {
      const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
      response.setHeader("date", new Date(this.clock()).toUTCString());
      send(request, response, this.#respond(request, body));
    } catch (error) {
      if (!(error instanceof S3Error)) return void response.destroy(error as Error);
      const { status, code, message } = error;
      send(request, response, {
        status,
        body: document("Error", `<Code>${code}</Code><Message>${xml(message)}</Message>`),
      });
    }
  }

  #respond(request: IncomingMessage, body: Buffer): Reply {
    const { headers, method = "" } = request;
    const refusal = refusalOf(request, this.users, REGION, this.clock());
    if (refusal !== undefined) throw new S3Error(refusal.status, refusal.code, refusal.message);
    const hash = createHash("sha256").update(body).digest("hex");
    if (headers["x-amz-content-sha256"] !== hash) throw new S3Error(400, "XAmzContentSHA256Mismatch");
    const md5 = createHash("md5").update(body).digest("base64");
    if ((headers["content-md5"] ?? md5) !== md5) throw new S3Error(400, "BadDigest");
    const { pathname, searchParams } = new URL(request.url ?? "", "http://server");
    // The bucket is in the path, or is the first part of the host name.
    const [, virtual] = /^(.+)\.localhost(?::\d+)?$/.exec(headers.host ?? "") ?? [];
    const path = decodeURIComponent(virtual === undefined ? pathname.slice(1) : `${virtual}${pathname}`);
    const [name = "", ...rest] = path.split("/");
    const key = rest.join("/");
    if (key === "" && method === "PUT") return this.#create(name);
    const kind = `${method} ${key === "" ? "bucket" : "object"}${parameterOf(searchParams)}`;
    const run = CALLS[kind];
    if (run === undefined) throw new S3Error(501, "NotImplemented", kind);
    const effective = this.ignoresIfNoneMatch ? { ...headers, "if-none-match": undefined } : headers;
    return run({ bucket: this.bucket(name), key, query: searchParams, headers: effective, body });
  }

  #create(name: string): Reply {
    if (!this.buckets.has(name)) this.buckets.set(name, new S3Bucket());
    return { status: 200 };
  }
}

/** Parameters that select the operation. */
const CHOOSING = ["uploads", "delete", "uploadId", "partNumber", "list-type"];

const parameterOf = (query: URLSearchParams): string =>
  CHOOSING.filter((name) => query.has(name))
    .map((name) => ` ${name}`)
    .join("");

const CALLS: Readonly<Record<string, (call: Call) => Reply>> = {
  "HEAD bucket": () => ({ status: 200 }),
  "PUT object": ({ bucket, key, body, headers }) => {
    const { etag } = bucket.put(key, body, metadataOf(headers), isOnlyNew(headers));
    return { status: 200, headers: { etag } };
  },
  "GET object": getObject,
  "HEAD object": getObject,
  "DELETE object": ({ bucket, key }) => {
    bucket.objects.delete(key);
    return { status: 204 };
  },
  "POST bucket delete": ({ bucket, body, headers }) => {
    if (headers["content-md5"] === undefined)
      throw new S3Error(400, "InvalidRequest", "Missing required header: Content-MD5");
    const objects = childrenOf(parseXml(body.toString()), "Object");
    if (objects.length > 1000) throw new S3Error(400, "MalformedXML");
    for (const object of objects) bucket.objects.delete(textOf(object, "Key") ?? "");
    return { status: 200, body: document("DeleteResult", "") };
  },
  "GET bucket list-type": listObjects,
  "GET bucket uploads": ({ bucket, query }) => {
    const prefix = query.get("prefix") ?? "";
    const uploads = [...bucket.uploads.values()].filter(({ key }) => key.startsWith(prefix));
    const entries = uploads.map(({ key, id }) => `<Upload><Key>${xml(key)}</Key><UploadId>${id}</UploadId></Upload>`);
    return {
      status: 200,
      body: document("ListMultipartUploadsResult", `<IsTruncated>false</IsTruncated>${entries.join("")}`),
    };
  },
  "POST object uploads": ({ bucket, key, headers }) => {
    const id = bucket.beginUpload(key, metadataOf(headers));
    return {
      status: 200,
      body: document("InitiateMultipartUploadResult", `<Key>${xml(key)}</Key><UploadId>${id}</UploadId>`),
    };
  },
  "PUT object uploadId partNumber": ({ bucket, key, query, body }) => ({
    status: 200,
    headers: { etag: bucket.putPart(key, query.get("uploadId") ?? "", Number(query.get("partNumber")), body) },
  }),
  "POST object uploadId": ({ bucket, key, query, body, headers }) => {
    const parts = childrenOf(parseXml(body.toString()), "Part").map((part) => ({
      number: Number(textOf(part, "PartNumber")),
      etag: textOf(part, "ETag") ?? "",
    }));
    const { etag } = bucket.complete(key, query.get("uploadId") ?? "", parts, isOnlyNew(headers));
    return {
      status: 200,
      body: document("CompleteMultipartUploadResult", `<Key>${xml(key)}</Key><ETag>${xml(etag)}</ETag>`),
    };
  },
  "DELETE object uploadId": ({ bucket, key, query }) => {
    bucket.abort(key, query.get("uploadId") ?? "");
    return { status: 204 };
  },
};

function getObject({ bucket, key, headers }: Call): Reply {
  const { body, etag, modified, metadata } = bucket.get(key);
  if ((headers["if-match"] ?? etag) !== etag) throw new S3Error(412, "PreconditionFailed");
  const facts = { etag, "last-modified": modified.toUTCString(), "accept-ranges": "bytes", ...metadata };
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? "") ?? [];
  if (first === undefined) return { status: 200, headers: facts, body };
  const start = Number(first);
  if (start >= body.length) throw new S3Error(416, "InvalidRange", "The requested range is not satisfiable");
  const end = last === "" ? body.length : Math.min(Number(last) + 1, body.length);
  const range = `bytes ${start}-${end - 1}/${body.length}`;
  return { status: 206, headers: { ...facts, "content-range": range }, body: body.subarray(start, end) };
}

function listObjects({ bucket, query }: Call): Reply {
  const prefix = query.get("prefix") ?? "";
  const after = query.get("continuation-token") ?? query.get("start-after") ?? "";
  const { keys, truncated } = bucket.list(prefix, after, Math.min(1000, Number(query.get("max-keys") ?? 1000)));
  const isEncoded = query.get("encoding-type") === "url";
  const entries = keys.map((key) => {
    const { body, etag, modified } = bucket.get(key);
    // AWS encodes names this way: slashes stay.
    const name = isEncoded ? encodeURIComponent(key).replaceAll("%2F", "/").replaceAll("%20", "+") : xml(key);
    return `<Contents><Key>${name}</Key><LastModified>${modified.toISOString()}</LastModified><ETag>${xml(etag)}</ETag><Size>${body.length}</Size></Contents>`;
  });
  const next = truncated ? `<NextContinuationToken>${xml(keys.at(-1) ?? "")}</NextContinuationToken>` : "";
  const encoding = isEncoded ? "<EncodingType>url</EncodingType>" : "";
  return {
    status: 200,
    body: document("ListBucketResult", `<IsTruncated>${truncated}</IsTruncated>${next}${encoding}${entries.join("")}`),
  };
}

function send(request: IncomingMessage, response: ServerResponse, { status, headers = {}, body = "" }: Reply): void {
  response.writeHead(status, { ...headers, ...(status === 204 ? {} : { "content-length": Buffer.byteLength(body) }) });
  response.end(request.method === "HEAD" ? undefined : body);
}

function isOnlyNew(headers: IncomingMessage["headers"]): boolean {
  const condition = headers["if-none-match"];
  if (condition !== undefined && condition !== "*") throw new S3Error(501, "NotImplemented");
  return condition === "*";
}

const metadataOf = (headers: IncomingMessage["headers"]): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (name.startsWith("x-amz-meta-") ? [[name, String(value)]] : [])),
  );

const document = (name: string, content: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<${name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${content}</${name}>`;

const xml = (text: string): string => text.replace(/[&<>"\r]/g, (character) => `&#${character.charCodeAt(0)};`);
