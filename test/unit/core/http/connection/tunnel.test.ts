import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import type { Module } from "#core/types.ts";
import { startHost } from "#test/support/host.ts";

/** Returns what the server sends until it has sent `end`, or until it closes. */
async function sent(socket: Socket, end: string): Promise<string> {
  let text = "";
  socket.setEncoding("utf8");
  for await (const piece of socket.iterator({ destroyOnReturn: false })) {
    text += piece;
    if (text.includes(end)) break;
  }
  return text;
}

const serving = (tunnels: boolean) => ({
  config: { modules_enabled: ["http", "http_app"], https_ports: [] },
  modules: {
    http_app: (module: Module) =>
      module.provides("http", {
        default_path: "/",
        tunnels,
        route: { "GET /*": ({ request }) => `own ${request.url.host ?? request.headers.host}` },
      }),
  },
  inMain: ["http_app"],
});

test("a tunnel to any host leads to this server, and a tunnel inside it is refused", async () => {
  await using host = await startHost(serving(true));
  const socket = connect(host.http, "127.0.0.1");
  const requested = "GET /x HTTP/1.1\r\nHost: far.example\r\n\r\n";
  // The first request is sent together with the CONNECT.
  socket.write(`CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n${requested}`);
  assert.match(
    await sent(socket, "own far.example"),
    /^HTTP\/1\.1 200 Connection established\r\n\r\nHTTP\/1\.1 200 OK/,
  );
  socket.write("GET http://absolute.example/y HTTP/1.1\r\nHost: ignored.example\r\n\r\n");
  assert.match(await sent(socket, "own absolute.example"), /^HTTP\/1\.1 200 OK/);
  socket.write("CONNECT third.example:80 HTTP/1.1\r\nHost: third.example:80\r\n\r\n");
  assert.equal(await sent(socket, "never"), "");
});

test("a CONNECT gets 501 when no app has enabled tunnels", async () => {
  await using host = await startHost(serving(false));
  const socket = connect(host.http, "127.0.0.1");
  socket.write("CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n");
  assert.match(await sent(socket, "never"), /^HTTP\/1\.1 501 /);
});
