/** Tests how connected clients notice that the server stops. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { event_stream } from "#core/http/index.ts";
import type { ModuleFunction } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { startHost } from "#test/support/host.ts";

const app: ModuleFunction = (module) => {
  let go: (text: string) => void = () => undefined;
  const buffered = new Promise<string>((resolve) => {
    go = resolve;
  });
  module.hook("server-stopping", () => void setTimeout(go, 50, "at last"));
  module.provides("http", {
    route: {
      "GET /": () => "served",
      "GET /held": () => buffered,
      "GET /events": (event) => void event_stream(event).send({ data: "first" }),
    },
  });
};

const started = (unload_grace = 10) =>
  startHost({ config: { unload_grace, stop_timeout: unload_grace }, modules: { mod_app: app } });

test("an event stream ends after its last event", async () => {
  await using host = await started();
  const response = await fetch(`http://127.0.0.1:${host.http}/app/events`);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const first = await reader.read();
  assert.match(Buffer.from(first.value ?? []).toString(), /data: first/);
  const stopped = host.stop();
  // A connection that is cut rejects.
  while (!(await reader.read()).done);
  await stopped;
});

test("an idle connection is closed at once, and one with a request after its response", async () => {
  await using host = await started();
  const open = async (path: string) => {
    const socket = connect(host.http, "127.0.0.1");
    const ended = once(socket, "end");
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    let text = "";
    socket.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
    });
    return { socket, ended, text: () => text };
  };
  const idle = await open("/app/");
  while (!idle.text().includes("served")) await once(idle.socket, "data");
  const busy = await open("/app/held");
  while (!host.host.status().requests.join().includes("/app/held")) await new Promise(setImmediate);
  const stopped = host.stop();
  await idle.ended;
  assert.equal(busy.text(), "");
  await busy.ended;
  assert.match(busy.text(), /Connection: close.*at last/is);
  await stopped;
});

test("HTTP/2 clients get a GOAWAY, and the responses to their requests", async () => {
  await using host = await started();
  const session = connectHttp2(`https://127.0.0.1:${host.https}`, { rejectUnauthorized: false });
  const stream = session.request({ ":path": "/app/held" });
  while (!host.host.status().requests.join().includes("/app/held")) await new Promise(setImmediate);
  const goaway = once(session, "goaway");
  const closed = once(session, "close");
  const stopped = host.stop();
  const [code] = await goaway;
  assert.equal(code, constants.NGHTTP2_NO_ERROR);
  assert.equal(Buffer.concat(await stream.toArray()).toString(), "at last");
  await closed;
  await stopped;
});

test("a stop does not wait for connections on which no request has begun", async () => {
  await using host = await started(3600);
  const plain = connect(host.http, "127.0.0.1");
  const beforeHandshake = connect(host.https, "127.0.0.1");
  const afterHandshake = connectTls({ port: host.https, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] });
  await Promise.all([once(plain, "connect"), once(beforeHandshake, "connect"), once(afterHandshake, "secureConnect")]);
  await eventually("all are taken over", () => host.host.connections() === 3);
  const closed = [plain, beforeHandshake, afterHandshake].map((socket: Socket) => once(socket.resume(), "close"));
  await host.stop();
  await Promise.all(closed);
});

test("clients that have connected but were not accepted yet when the server stops get a response", async () => {
  await using host = await started();
  const clients = Array.from({ length: 20 }, () => {
    const socket = connect(host.http, "127.0.0.1");
    socket.end("GET /app/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return socket;
  });
  // The sockets connect at the end of this turn, and the event loop has no time to accept them.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  const stopped = host.stop();
  for (const socket of clients) assert.match(Buffer.concat(await socket.toArray()).toString(), /served$/);
  await stopped;
});
