/**
 * Tests that no decision of the host or of a bundled module depends on `request.headers`: in that
 * table a client's `Content_Length` becomes Content-Length. They use
 * `request.header("Content-Length")`, or read the raw head.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Beginnings of the paths of files that may read a property `headers`, each with the reason:
 * because they make the table, or because the property is another one.
 */
const exceptions: Readonly<Record<string, string>> = {
  "core/types/": "declares the table for authors",
  "core/http/message/request.ts": "makes the table for authors",
  "core/http/websocket/exchange.ts": "Node's own message, whose names are exact",
  "core/http/service.ts": "Node's own message, whose names are exact",
  "core/relay/": "Node's own messages, whose names are exact",
  "core/testing/inject.ts": "fields that a test gives",
  "core/testing/outside.ts": "Node's own message, whose names are exact",
  "core/net/": "requests of this server's own to others",
  "core/processes/": "Node's own messages, whose names are exact",
  "modules/mod_backup/backends/signature.ts": "a request of this server's own to a store",
  "modules/mod_http_guard/identity.ts": "removes lines from the table, too",
};

const reads = [
  /\brequest\??\.headers\b/,
  // Destructures the table where it is declared, alone or from the event.
  /\{[^{}]*\bheaders\b[^{}]*(?:\{[^{}]*\}[^{}]*)?\}\s*(?::|=)\s*(?:Pick<|[\w.#]*\b)?(?:HttpRequest|request)\b/,
  /\brequest\s*:\s*\{[^{}]*\bheaders\b/,
  /\bPick<\s*HttpRequest\s*,[^>]*"headers"/,
  /\bRequestHeaders\b/,
  // Destructures something whose type is not stated.
  /\(\{[^{}]*\bheaders\b[^{}]*\}\)\s*=>[^;{]*\bheaders\./,
];

const readsTable = (source: string) => reads.some((pattern) => pattern.test(source));

test("each way of reading the table of request headers is found, and reads of one header are not", () => {
  for (const source of [
    "const type = event.request.headers.content_type;",
    "const type = this.#request?.headers.accept;",
    "const { headers, url } = event.request;",
    "const { headers: { authorization } } = this.#request;",
    "function f({ headers }: HttpRequest) {}",
    "const f = (\n  { url, headers: { via } }: Pick<HttpRequest, 'url'>,\n) => via;",
    "function f({ request: { headers } }: HttpEvent) {}",
    'type Asking = Pick<HttpRequest, "url" | "headers">;',
    "const host = ({ url, headers }) => url.host ?? headers.host;",
    "function f(headers: RequestHeaders) {}",
  ]) {
    assert.ok(readsTable(source), source);
  }
  for (const source of [
    'const type = event.request.header("content-type");',
    "const { url } = event.request;\nconst { headers } = event.response;",
    "function f({ headers }: Content, request: HttpRequest) {}",
    'type Asking = Pick<HttpRequest, "url" | "header">;',
  ]) {
    assert.ok(!readsTable(source), source);
  }
});

test("no file of the host or of a bundled module reads the table of request headers", () => {
  const found = globSync("{core,modules}/**/*.ts", { cwd: root }).filter((file) =>
    readsTable(readFileSync(join(root, file), "utf8")),
  );
  const excepted = (file: string) => Object.keys(exceptions).find((start) => file.startsWith(start));
  assert.deepEqual(
    found.filter((file) => excepted(file) === undefined),
    [],
  );
  const used = new Set(found.map(excepted));
  assert.deepEqual(
    Object.keys(exceptions).filter((start) => !used.has(start)),
    [],
    "exceptions that nothing needs",
  );
});
