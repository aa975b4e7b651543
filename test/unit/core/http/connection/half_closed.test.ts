/**
 * Clients that end their side of the connection after their request, as `printf ... | nc -N` does.
 */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { HttpEvent } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { serving, startHost, type TestHost } from "#test/support/host.ts";
import { RawConnection } from "#test/support/raw.ts";

const apart = `
export const isolated = true;
export const depends = ["http"];
export default (module) => module.provides("http", { route: {
  "GET /": async () => { await new Promise((resolve) => setTimeout(resolve, 30)); return "late"; },
  "GET /watching": ({ request }) => new Promise((resolve) => request.signal.addEventListener("abort", () => { module.log.warn("apart left"); resolve("x"); })),
} });
`;

const left: string[] = [];
const upstream = createServer((_, response) => void setTimeout(() => response.end("proxied"), 30));
let host: TestHost;

before(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  host = await startHost({
    async prepare(folder) {
      await mkdir(join(folder, "www", "folder"), { recursive: true });
      await writeFile(join(folder, "www", "a.txt"), "a file");
      await writeFile(join(folder, "www", "large.txt"), "x".repeat(300_000));
    },
    config: (folder) => ({
      modules_enabled: ["http", "http_errors", "http_files", "http_dir_listing", "http_proxy"],
      plugin_autoload: true,
      http_files_dir: join(folder, "www"),
      http_dir_listing: true,
      http_proxy: { up: { upstreams: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}` } },
    }),
    plugins: { mod_apart: apart },
    modules: {
      mod_app: serving({
        route: {
          "GET /async": async () => {
            await sleep(30);
            return "late";
          },
          "GET /pieces": async function* () {
            for (const piece of ["one ", "two ", "three"]) {
              await sleep(10);
              yield piece;
            }
          },
          "POST /body": ({ request }: HttpEvent) => request.body,
          "POST /parts": async ({ request }: HttpEvent) => {
            const names: string[] = [];
            for await (const part of request.parts()) names.push(`${part.name}=${await part.text()}`);
            await sleep(10);
            return names.join();
          },
          "GET /silent": () => {
            const silent = new Readable({ read() {} });
            return silent.on("close", () => left.push("silent"));
          },
          "GET /watching": ({ request }: HttpEvent) =>
            new Promise<string>((resolve) => {
              request.signal.addEventListener("abort", () => {
                left.push("app");
                resolve("x");
              });
            }),
        },
      }),
    },
  });
});
after(async () => {
  await host.stop();
  upstream.close();
});

/** Sends a request, ends this side of the connection, and returns the response. */
async function halfClosed(path: string, tls: boolean, body = "", type = "text/plain"): Promise<string> {
  using connection = await RawConnection.open(tls ? host.https : host.http, { tls, timeout: 20_000 });
  const framing = body === "" ? "" : `Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n`;
  const method = body === "" ? "GET" : "POST";
  connection.write(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${framing}\r\n${body}`);
  connection.socket.end();
  return await connection.end();
}

const form = '--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--XX--\r\n';

for (const tls of [false, true]) {
  describe(`a client that ends its side after its request${tls ? ", by TLS" : ""}`, () => {
    test("gets the whole response, and the end of the connection", async () => {
      assert.match(await halfClosed("/files/a.txt", tls), /^HTTP\/1\.1 200 .*a file$/s);
      assert.match(await halfClosed("/files/large.txt", tls), /x{300000}$/);
      assert.match(await halfClosed("/files/", tls), /^HTTP\/1\.1 200 .*a\.txt/s);
      assert.match(await halfClosed("/app/async", tls), /late$/);
      assert.match(await halfClosed("/app/pieces", tls), /one .*two .*three\r\n0\r\n\r\n$/s);
      assert.match(await halfClosed("/app/body", tls, "what was sent"), /what was sent$/);
      assert.match(await halfClosed("/app/parts", tls, form, "multipart/form-data; boundary=XX"), /a=1$/);
      assert.match(await halfClosed("/up/", tls), /^HTTP\/1\.1 200 .*proxied/s);
      assert.match(await halfClosed("/apart/", tls), /^HTTP\/1\.1 200 .*late$/s);
      assert.match(await halfClosed("/app/nowhere", tls), /^HTTP\/1\.1 404 /);
    });

    test("counts as gone for a stream that has nothing to send within a second", async () => {
      left.length = 0;
      using connection = await RawConnection.open(tls ? host.https : host.http, { tls });
      connection.write("GET /app/silent HTTP/1.1\r\nHost: localhost\r\n\r\n");
      await sleep(50);
      connection.socket.end();
      await connection.end();
      await eventually("the stream is destroyed", () => left.includes("silent"));
    });

    test("counts as gone for a handler that waits for the client to leave", async () => {
      left.length = 0;
      const before = host.log().split("apart left").length;
      for (const path of ["/app/watching", "/apart/watching"]) {
        using connection = await RawConnection.open(tls ? host.https : host.http, { tls });
        connection.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
        await sleep(50);
        connection.socket.end();
        assert.equal(await connection.end(), "");
      }
      await eventually(
        "the handlers are notified",
        () => left.length > 0 && host.log().split("apart left").length > before,
      );
    });
  });
}
