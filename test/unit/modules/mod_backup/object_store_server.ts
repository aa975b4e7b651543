/**
 * An object store in this process, with what backups use of it: signed requests, paged lists,
 * conditions, failures.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { hashOf, signedHeaders } from "#modules/mod_backup/backends/signature.ts";

const credentials = { keyId: "TESTKEY", secret: "a-secret-for-tests" };
const region = "eu-test-1";
/** Number of keys on a page. */
const PAGE = 3;

export class ObjectStoreServer {
  readonly objects = new Map<string, Buffer>();
  /** Method and path of each request. */
  readonly requests: string[] = [];
  /**
   * Called with each request first. A returned status is the response, and `cut` breaks the
   * connection.
   */
  before: (method: string, path: string) => number | "cut" | undefined = () => undefined;
  readonly #server = createServer((request, response) => void this.#respond(request, response));

  static async start(): Promise<ObjectStoreServer> {
    const started = new ObjectStoreServer();
    await new Promise<void>((resolve) => started.#server.listen(0, "127.0.0.1", resolve));
    return started;
  }

  get settings() {
    const { port } = this.#server.address() as AddressInfo;
    const endpoint = new URL(`http://127.0.0.1:${port}`);
    return { bucket: "bucket", prefix: "host 1/ü/", endpoint, region, credentials, retryMs: 1 };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "" } = request;
    const body = Buffer.concat(await request.toArray());
    const target = new URL(url, `http://${request.headers.host}`);
    this.requests.push(`${method} ${target.pathname}`);
    const fate = this.before(method, target.pathname);
    if (fate === "cut") return void request.socket.destroy();
    const [status, text] = fate === undefined ? this.#do(request, target, body) : [fate, fault("InternalError")];
    response.writeHead(status).end(text);
  }

  #do({ method = "", headers }: IncomingMessage, url: URL, body: Buffer): readonly [number, string | Buffer] {
    const bodyHash = String(headers["x-amz-content-sha256"]);
    if (bodyHash !== hashOf(body)) return [400, fault("XAmzContentSHA256Mismatch")];
    const [, names = ""] = /SignedHeaders=([^,]*)/.exec(headers.authorization ?? "") ?? [];
    const signed = names.split(";").filter((name) => name !== "host" && name !== "x-amz-date");
    const time = String(headers["x-amz-date"]);
    const at = new Date(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
    const given = Object.fromEntries(signed.map((name) => [name, String(headers[name])]));
    const expected = signedHeaders({ method, url, headers: given, bodyHash, region, at }, credentials);
    if (headers.authorization !== expected.authorization) return [403, fault("SignatureDoesNotMatch")];
    const [, bucket, ...rest] = url.pathname.split("/").map(decodeURIComponent);
    if (bucket !== "bucket") return [404, fault("NoSuchBucket")];
    if (rest.length === 0) return [200, this.#list(url.searchParams)];
    const key = rest.join("/");
    const found = this.objects.get(key);
    if (method === "GET") return found === undefined ? [404, fault("NoSuchKey")] : [200, found];
    if (method === "PUT" && headers["if-none-match"] === "*" && found !== undefined)
      return [412, fault("PreconditionFailed")];
    if (method === "PUT") this.objects.set(key, body);
    else this.objects.delete(key);
    return [method === "PUT" ? 200 : 204, ""];
  }

  #list(query: URLSearchParams): string {
    const prefix = query.get("prefix") ?? "";
    const from = query.get("continuation-token") ?? "";
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(prefix) && key > from).sort();
    const page = keys.slice(0, PAGE);
    const next =
      keys.length > PAGE ? `<NextContinuationToken>${escaped(page.at(-1) ?? "")}</NextContinuationToken>` : "";
    const contents = page.map((key) => `<Contents><Key>${encodeURIComponent(key)}</Key></Contents>`).join("");
    return `<?xml version="1.0"?><ListBucketResult>${contents}${next}</ListBucketResult>`;
  }
}

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("ü", "&#xFC;");
const fault = (code: string) =>
  `<Error><Code>${code}</Code><Message>As the &quot;test&quot; wants it</Message></Error>`;
