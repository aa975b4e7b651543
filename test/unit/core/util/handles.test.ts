/** The system handles behind Node's sockets. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { handleOf, serverOf, takeHandle } from "#core/util/patches/node/handles.ts";

test("the handle of a server can be listened on again, and that of a connection outlives it", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const handle = handleOf(server);
  assert.ok(handle !== null);
  const other = createServer().listen(serverOf(handle));
  await once(other, "listening");
  const accepted = once(other, "connection") as Promise<[Socket]>;
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [socket] = await Promise.race([accepted, once(server, "connection") as Promise<[Socket]>]);
  const taken = takeHandle<{ readStop?(): void; close(): void }>(socket);
  assert.ok(taken !== null && socket.destroyed);
  assert.equal(takeHandle(socket), null, "it is taken once");
  const closed = once(client, "close");
  client.resume();
  taken.close();
  await closed;
  other.close();
  server.close();
});
