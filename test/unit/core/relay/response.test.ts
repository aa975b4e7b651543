/** Responses of other servers on their way to a client. */
import assert from "node:assert/strict";
import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { relayResponse } from "#core/relay/response.ts";
import type { HttpEvent } from "#core/types.ts";
import { TestService } from "#test/support/service.ts";

test("a response that has broken off before it is relayed is cut, and is no failure of the module", async (t) => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => void socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"));
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const reasons: string[] = [];
  await using host = await TestService.start({
    route: {
      "GET /": async (event: HttpEvent) => {
        const [incoming] = (await once(http.get({ port, host: "127.0.0.1", agent: false }), "response")) as [
          IncomingMessage,
        ];
        await new Promise((resolve) => incoming.once("close", resolve));
        return relayResponse(event, incoming, [], ({ message }) => reasons.push(message));
      },
    },
  });
  await assert.rejects(fetch(host.url("/app/")).then((response) => response.text()));
  assert.deepEqual(reasons, ["aborted"]);
  assert.deepEqual(host.errors, []);
});
