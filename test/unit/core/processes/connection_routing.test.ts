import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { routeConnection } from "#core/processes/connection_routing.ts";

test("everything that has arrived is handed over with the connection", async () => {
  const connection = new PassThrough();
  connection.write("GET /app/events HTTP/1.1\r\n");
  connection.write("Host: example.org\r\n\r\n");
  const handed = new Promise((resolve) => {
    const handsOver = (path: string, head: Buffer) => {
      resolve([path, String(head)]);
      return true;
    };
    routeConnection(connection as unknown as Socket, () => resolve("served here"), 5000, handsOver);
  });
  assert.deepEqual(await handed, ["/app/events", "GET /app/events HTTP/1.1\r\nHost: example.org\r\n\r\n"]);
});
