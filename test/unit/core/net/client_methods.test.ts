import assert from "node:assert/strict";
import { test } from "node:test";
import { new_client, request } from "#core/net/http.ts";
import { echo, echoPeer, failure, rawPeer } from "./peers.ts";

test("a request sends the standard methods in capitals, and others unchanged", async () => {
  await using peer = await echoPeer();
  for (const [method, sent] of [
    ["post", "POST"],
    ["Delete", "DELETE"],
    ["patch", "PATCH"],
  ] as const)
    assert.equal(echo(await request(peer.url, { method })).method, sent);
  const line = Promise.withResolvers<string>();
  await using raw = await rawPeer((socket, text) => {
    line.resolve(text);
    socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  });
  await request(raw.url, { method: "notify-me" });
  assert.match(await line.promise, /^notify-me \/ HTTP/);
  await failure("invalid-request", request(peer.url, { method: "connect" }));
});

test("a request is repeated if the server has closed an idle connection, unless that could repeat a side effect", async () => {
  let connections = 0;
  await using closing = await rawPeer((socket) => {
    connections += 1;
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    socket.once("data", () => socket.destroy());
  });
  await using client = new_client({ connections: 1 });
  for (const method of ["GET", "OPTIONS", "GET"]) {
    assert.equal((await client.request(closing.url, { method })).code, 200);
  }
  assert.equal(connections, 3);
  await failure("connection-closed", client.request(closing.url, { method: "DELETE" }));
  assert.equal((await client.request(closing.url, { method: "POST" })).code, 200);
  await failure("connection-closed", client.request(closing.url, { body: "a" }));
  assert.equal(connections, 4);
});
