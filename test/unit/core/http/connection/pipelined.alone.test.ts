/** Clients that request much at once and read nothing cost the server a limited amount. */
import assert from "node:assert/strict";
import { readdirSync, readlinkSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { STREAM_COST } from "#core/http/connection/progress.ts";
import { serving, startHost } from "#test/support/host.ts";
import { RawConnection } from "#test/support/raw.ts";
import { TestService } from "#test/support/service.ts";

const folder = await mkdtemp(join(tmpdir(), "modhost-pipelined-"));
after(() => rm(folder, { recursive: true }));
const file = join(folder, "file");
await writeFile(file, Buffer.alloc(8 * 1024 * 1024));

const get = (path: string) => `GET /app${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const openFiles = () =>
  readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === file;
    } catch {
      return false;
    }
  }).length;

test("pipelined requests begin one after the other and get their responses in order", async () => {
  let running = 0;
  let most = 0;
  await using service = await TestService.start({
    route: {
      "GET /*": async (_event, name) => {
        most = Math.max(most, (running += 1));
        await new Promise(setImmediate);
        running -= 1;
        return `<${name}>`;
      },
      "POST /*": ({ request }, name) => `<${name} ${request.body}>`,
    },
  });
  using connection = await RawConnection.open(service.port);
  const post = "POST /app/post HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n";
  const count = 3000;
  const requested = Array.from({ length: count }, (_, at) => get(`/${at}`));
  connection.write(`${requested.join("")}${post}bo`);
  await connection.until(new RegExp(`<${count - 1}>`));
  connection.write(`dy${get("/last")}`);
  await connection.until(/<last>/);
  const replies = [...connection.text.matchAll(/<(.*?)>/g)].map(([, name]) => name);
  assert.deepEqual(replies, [...requested.map((_, at) => String(at)), "post body", "last"]);
  assert.equal(most, 1);
});

for (const tls of [false, true]) {
  const over = tls ? ", over TLS" : "";
  test(`a client that requests a file ten thousand times and reads nothing has one file open${over}`, async () => {
    await using running = await startHost({
      modules: {
        mod_http_app: serving({
          route: { "GET /file": ({ response }) => response.send_file(file), GET: () => "here" },
        }),
      },
    });
    const url = `http://127.0.0.1:${running.http}/app`;
    using connection = await RawConnection.open(tls ? running.https : running.http, { tls });
    connection.socket.pause();
    connection.write(get("/file").repeat(10_000));
    for (let at = 0; at < 1000 && openFiles() === 0; at += 1) assert.equal(await (await fetch(url)).text(), "here");
    assert.equal(openFiles(), 1);
    const before = process.memoryUsage().rss;
    for (let at = 0; at < 20; at += 1) assert.equal(await (await fetch(url)).text(), "here");
    assert.equal(openFiles(), 1);
    assert.ok(process.memoryUsage().rss - before < 200 * 1024 * 1024);
  });
}

test("memory for all clients is limited: clients that read nothing are cut, and waiting requests then get their response", async () => {
  const maxUnsent = 2 * 1024 * 1024;
  await using running = await startHost({
    config: { http_max_unsent: maxUnsent },
    modules: {
      mod_http_app: serving({
        route: { "GET /file": ({ response }) => response.send_file(file), GET: () => "here" },
      }),
    },
  });
  let most = 0;
  // Without the limit all files would be open until the first clients are cut.
  const watching = setInterval(() => (most = Math.max(most, openFiles())), 20);
  const sessions = Array.from({ length: 3 }, () =>
    http2.connect(`https://127.0.0.1:${running.https}`, {
      rejectUnauthorized: false,
      settings: { initialWindowSize: 0 },
    }),
  );
  for (const session of sessions) session.on("error", () => undefined);
  try {
    const cut = sessions.flatMap((session) =>
      Array.from({ length: 50 }, () => {
        const stream = session.request({ ":path": "/app/file" }).on("error", () => undefined);
        return new Promise((resolve) => stream.once("close", resolve));
      }),
    );
    await Promise.race(cut);
    const url = `http://127.0.0.1:${running.http}/app`;
    assert.equal((await (await fetch(`${url}/file`)).arrayBuffer()).byteLength, 8 * 1024 * 1024);
    assert.equal(await (await fetch(url)).text(), "here");
    // Files of streams that were cut are closed while those of others are opened.
    assert.ok(most > 0 && most <= 2 * (2 + maxUnsent / STREAM_COST), `${most} files open at once`);
  } finally {
    clearInterval(watching);
    for (const session of sessions) session.destroy();
  }
});
