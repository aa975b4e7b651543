/** What the host knows of Node's own objects: that it holds for this version, and what is done where it does not. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { afterEach, test } from "node:test";
import { bytesTaken } from "#core/http/patches/node/bytes_taken.ts";
import { takeConnection, watchHeads } from "#core/http/patches/node/connections.ts";
import { currentAnswers, ListedAnswers, whyAnswersAreListed } from "#core/http/patches/node/current_answer.ts";
import { whyReadingIsNotHeld } from "#core/http/patches/node/reading.ts";

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

test("Node tells which answer has a connection", () => {
  assert.equal(whyAnswersAreListed(), undefined);
  assert.equal(currentAnswers().begin, undefined, "nothing need be listed");
});

test("connections can be held", () => {
  assert.equal(whyReadingIsNotHeld(), undefined);
});

test("a version that does not tell is noticed", () => {
  assert.match(whyAnswersAreListed({ of: () => undefined }) ?? "", /does not tell which answer/);
});

test("the list of the host's own says the same as Node, for requests that come at once and one after the other", async () => {
  const known = currentAnswers();
  const listed = new ListedAnswers();
  const told: boolean[] = [];
  const waiting: ServerResponse[] = [];
  const server = createServer();
  server.on("request", ({ socket }, response) => {
    listed.begin(socket, response);
    told.push(known.of(socket) === listed.of(socket));
    waiting.push(response);
    if (waiting.length < 3) return;
    const [first, second, third] = waiting as [ServerResponse, ServerResponse, ServerResponse];
    assert.equal(listed.of(socket), first);
    first.end("1").once("close", () => {
      told.push(listed.of(socket) === second, known.of(socket) === second);
      third.once("close", () => told.push(listed.of(socket) === undefined, known.of(socket) === undefined));
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
    told,
    Array.from({ length: 7 }, () => true),
  );
});

test("what the kernel has taken of a large write is known before all of it is", async () => {
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

test("a server that opens no port tells of malformed requests on a connection that it is given, and of late heads", async () => {
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
