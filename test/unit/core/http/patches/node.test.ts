/**
 * Tests the assumptions of the host about Node's own objects for this version, and the fallbacks
 * for other versions.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { afterEach, test } from "node:test";
import { bytesTaken } from "#core/http/patches/node/bytes_taken.ts";
import {
  closeIdleConnections,
  serveHalfClosed,
  takeConnection,
  watchHeads,
} from "#core/http/patches/node/connections.ts";
import { currentResponses, ListedResponses, whyResponsesAreListed } from "#core/http/patches/node/current_response.ts";
import { whyReadingIsNotPaused } from "#core/http/patches/node/reading.ts";

const opened: { close(): void }[] = [];
afterEach(() => {
  for (const each of opened.splice(0)) each.close();
});

async function portOf(server: { listen(port: number, host: string): unknown; address(): unknown; close(): void }) {
  server.listen(0, "127.0.0.1");
  opened.push(server);
  await once(server as Server, "listening");
  return (server.address() as AddressInfo).port;
}

function client(port: number): Socket {
  const socket = connect(port, "127.0.0.1");
  opened.push({ close: () => socket.destroy() });
  socket.on("error", () => undefined);
  return socket;
}

test("Node shows which response a connection is sending", () => {
  assert.equal(whyResponsesAreListed(), undefined);
  assert.equal(currentResponses().begin, undefined, "nothing need be listed");
});

test("connections can be paused", () => {
  assert.equal(whyReadingIsNotPaused(), undefined);
});

test("a version that does not show the current response is noticed", () => {
  assert.match(whyResponsesAreListed({ of: () => undefined }) ?? "", /does not show which response/);
});

test("the host's own list agrees with Node, for pipelined and for separate requests", async () => {
  const known = currentResponses();
  const listed = new ListedResponses();
  const reported: boolean[] = [];
  const waiting: ServerResponse[] = [];
  const server = createServer();
  server.on("request", ({ socket }, response) => {
    listed.begin(socket, response);
    reported.push(known.of(socket) === listed.of(socket));
    waiting.push(response);
    if (waiting.length < 3) return;
    const [first, second, third] = waiting as [ServerResponse, ServerResponse, ServerResponse];
    assert.equal(listed.of(socket), first);
    first.end("1").once("close", () => {
      reported.push(listed.of(socket) === second, known.of(socket) === second);
      third.once("close", () => reported.push(listed.of(socket) === undefined, known.of(socket) === undefined));
      second.end("2");
      third.end("3");
    });
  });
  const socket = client(await portOf(server));
  socket.write("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3));
  let text = "";
  for await (const chunk of socket) {
    text += chunk;
    if (text.includes("\r\n\r\n3")) break;
  }
  assert.deepEqual(
    reported,
    Array.from({ length: 7 }, () => true),
  );
});

test("the bytes that the kernel has taken are known before a large write is complete", async () => {
  const server = createTcpServer();
  const port = await portOf(server);
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const far = client(port).pause();
  const [near] = await accepted;
  opened.push({ close: () => near.destroy() });
  near.on("error", () => undefined);
  const bytes = 64 * 1024 * 1024;
  near.write(Buffer.alloc(bytes));
  const taken = bytesTaken(near);
  assert.ok(taken !== undefined && taken >= 0 && taken < bytes, `${taken} of ${bytes}`);
  far.destroy();
});

test("a server that opens no port reports malformed requests and late heads on a connection that it is given", async () => {
  const server = createServer({ headersTimeout: 50, connectionsCheckingInterval: 20 });
  watchHeads(server);
  opened.push(server);
  const errors: (string | undefined)[] = [];
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    errors.push(error.code);
    socket.destroy();
  });
  const ports = createTcpServer((socket) => takeConnection(server, socket));
  const port = await portOf(ports);
  const malformed = client(port);
  malformed.write("nonsense\r\n\r\n");
  await once(malformed, "close");
  const late = client(port);
  late.write("GET / HTTP/1.1\r\n");
  await once(late, "close");
  assert.deepEqual(errors, ["HPE_INVALID_METHOD", "ERR_HTTP_REQUEST_TIMEOUT"]);
});

test("a server can respond to clients that have ended their side of the connection", async () => {
  const server = createServer((_, response) => void setImmediate(() => setImmediate(() => response.end("late"))));
  assert.equal(Reflect.get(server, "httpAllowHalfOpen"), false, "Node knows the property");
  serveHalfClosed(server);
  const outer = createTcpServer({ allowHalfOpen: true }, (socket) => takeConnection(server, socket));
  const socket = client(await portOf(outer));
  socket.end("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  let text = "";
  for await (const chunk of socket) text += chunk;
  assert.match(text, /late$/);
});

test("idle connections are closed, except one that waits for its first request", async () => {
  const server = createServer((_, response) => void response.end("text"));
  const port = await portOf(server);
  const accepted: Socket[] = [];
  server.on("connection", (socket) => accepted.push(socket));
  const idle = client(port);
  idle.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(idle, "data");
  const unused = client(port);
  await once(server, "connection");
  const [, near] = accepted as [Socket, Socket];
  closeIdleConnections(server, [near]);
  await once(idle, "close");
  unused.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const [response] = (await once(unused, "data")) as [Buffer];
  assert.match(response.toString(), /text$/);
  near.destroy();
  await once(unused, "close");
});
