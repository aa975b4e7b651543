/**
 * Code for Node.js's HTTP/1 objects behind each version of HTTP. It changes the objects as Express
 * does.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { connect } from "node:tls";
import Koa, { type Context } from "koa";
import { startHost, type TestHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";

type Next = () => void;
type Application = (request: http.IncomingMessage, response: http.ServerResponse, next?: Next) => void;

/** Replaces the prototypes of both objects by ones with own methods, as Express does. */
const ownRequest = Object.create(http.IncomingMessage.prototype);
const ownResponse = Object.create(http.ServerResponse.prototype, {
  send: {
    value(this: http.ServerResponse, body: string) {
      this.setHeader("Content-Type", "text/plain; charset=utf-8");
      this.setHeader("Connection", "close");
      this.end(this.req.method === "HEAD" ? undefined : body);
    },
  },
});
const express: Application = (request, response, next) => {
  Object.setPrototypeOf(request, ownRequest);
  Object.setPrototypeOf(response, ownResponse);
  const { send } = response as http.ServerResponse & { send(body: string): void };
  response.setHeader("X-Powered-By", "Express");
  // Koa begins with a 404, which koa-connect undoes.
  response.statusCode = 200;
  if (request.url === "/next") return next?.();
  if (request.url === "/pieces") {
    response.writeHead(201, { "X-Many": ["a", "b"] });
    response.write("one ");
    setImmediate(() => response.end("two"));
    return;
  }
  if (request.url === "/late") {
    setImmediate(() => send.call(response, String(request.url)));
    return;
  }
  if (request.url === "/pipe") {
    request.pipe(response);
    return;
  }
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (piece: string) => {
    body += piece;
  });
  request.on("end", () =>
    send.call(response, [request.method, request.headers.host ? "host" : "none", body].join(" ")),
  );
};

const detached = (context: Context) => {
  context.respond = false;
  express(context.req, context.res);
};
/** Wraps middleware as koa-connect does. */
const connected = (context: Context, next: () => Promise<unknown>) =>
  new Promise<void>((resolve, reject) => {
    context.res.on("finish", resolve).on("close", resolve);
    context.respond = false;
    express(context.req, context.res, () => {
      context.respond = true;
      next().then(() => resolve(), reject);
    });
  });
const reply = (context: Context) => {
  context.set(
    "X-Fields",
    Object.keys(context.req.headers)
      .filter((name) => name.startsWith(":"))
      .join(),
  );
  context.body = `${context.req.headers.host === undefined ? "none" : "host"} after`;
};

describe("a handler for Node.js's objects", () => {
  let host: TestHost;
  before(async () => {
    host = await startHost({
      modules: {
        detached: (module) => module.provides("http", { middleware: detached as never }),
        whole: (module) => module.provides("http", { middleware: new Koa().use(detached) as never }),
        connected: (module) => module.provides("http", { middleware: [connected, reply] as never }),
        layered: (module) => {
          module.provides("http-middleware", { apps: ["layered"], middleware: connected as never });
          module.provides("http", { route: { "GET /next": () => "in the app" } });
        },
      },
    });
  });
  after(() => host.stop());

  for (const app of ["detached", "whole", "connected"]) {
    overEach(
      () => host,
      `reads the body and answers: ${app}`,
      async (client) => {
        const reply = await client.request({ path: `/${app}/`, method: "POST", body: "sent" });
        assert.deepEqual([reply.status, reply.text], [200, "POST host sent"]);
        assert.equal(reply.header("x-powered-by"), "Express");
      },
    );
    overEach(
      () => host,
      `answers in pieces: ${app}`,
      async (client) => {
        const reply = await client.request(`/${app}/pieces`);
        assert.deepEqual([reply.status, reply.text, reply.header("x-many")], [201, "one two", "a, b"]);
      },
    );
    overEach(
      () => host,
      `sees its own path after the middleware has returned: ${app}`,
      async (client) => {
        const reply = await client.request(`/${app}/late`);
        assert.deepEqual([reply.status, reply.text], [200, "/late"]);
      },
    );
    overEach(
      () => host,
      `pipes a large body back: ${app}`,
      async (client) => {
        const body = "x".repeat(300_000);
        const reply = await client.request({ path: `/${app}/pipe`, method: "POST", body });
        assert.equal(reply.text.length, body.length);
      },
    );
    overEach(
      () => host,
      `answers HEAD: ${app}`,
      async (client) => {
        assert.equal((await client.request({ path: `/${app}/`, method: "HEAD" })).status, 200);
      },
    );
  }
  overEach(
    () => host,
    "hands on what it does not answer",
    async (client) => {
      const reply = await client.request("/connected/next");
      assert.deepEqual([reply.status, reply.text, reply.header("x-fields")], [200, "host after", ""]);
    },
  );
  overEach(
    () => host,
    "stands before apps",
    async (client) => {
      const reply = await client.request("/layered/next");
      assert.deepEqual([reply.status, reply.text], [200, "GET host "]);
    },
  );
});

/** Returns the protocol that a client which prefers HTTP/2 gets. */
async function spoken(port: number): Promise<string | false | null> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2", "http/1.1"] });
  await once(socket, "secureConnect");
  socket.destroy();
  return socket.alpnProtocol;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

describe("HTTP/2", () => {
  test("is not offered when it is off, and HTTPS still works", async () => {
    await using host = await startHost({ config: { https_http2: false } });
    assert.equal(await spoken(host.https), "http/1.1");
    assert.equal((await host.client("HTTPS/1.1").request("/nothing")).status, 404);
  });

  test("is not offered at the ports of https_http2_except", async () => {
    const plain = await freePort();
    const own = await freePort();
    await using host = await startHost({ config: { https_ports: [plain, own], https_http2_except: [own] } });
    assert.deepEqual([await spoken(plain), await spoken(own)], ["h2", "http/1.1"]);
    assert.equal(host.https, plain);
  });
});
