import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { type RpcHost, startOnline } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { askAt } from "../support.ts";

const MIB = 1024 * 1024;

/** The request that the service of a peer has received. */
interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly length: number;
}

/** A raw TCP service. A socket closes when its client does, with or without an error. */
const listenTo = (connected: (socket: Socket) => void) =>
  createTcpServer((socket) => connected(socket.on("error", () => undefined))).listen(0, "127.0.0.1");

/** Responds with a description of the request, except on a few paths. */
async function respond(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = "", url = "", headers } = incoming;
  if (url === "/reset") return void incoming.socket.destroy();
  if (url === "/half")
    // Destroyed after a delay, because a body that breaks off at once may break off before anything
    // is sent.
    return void response
      .writeHead(200, { "content-length": "10" })
      .write("half", () => setTimeout(() => response.destroy(), 20));
  if (url === "/silent") return;
  if (url === "/own") {
    response.writeHead(418, {
      connection: "close, x-hop",
      "x-hop": "1",
      "clear-site-data": '"*"',
      "service-worker-allowed": "/",
      "set-cookie": ["a=1", "b=2"],
      trailer: "x-sum",
    });
    response.write("tea");
    response.addTrailers({ "x-sum": "3" });
    return void response.end();
  }
  if (url === "/large") return void response.end(Buffer.alloc(4 * MIB, "x"));
  let length = 0;
  for await (const piece of incoming) length += (piece as Buffer).length;
  response.end(JSON.stringify({ method, url, headers, length }));
}

describe("services of peers at /p2p of the gateway's address", () => {
  let [client, peer]: RpcHost[] = [];
  let server: Server;
  let id = "";
  const hosts = () => [client, peer] as [RpcHost, RpcHost];
  const port = () =>
    hosts()[0]
      .host.listening()
      .find(({ service }) => service === "http_api_gateway")?.port as number;
  const set = (key: string, value: unknown) =>
    hosts()[0].call(`config?arg=${key}&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`);
  const ask = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    askAt(port(), path, headers, method);
  const seen = async (path: string, headers?: Record<string, string>, method?: string) =>
    JSON.parse((await ask(path, headers, method)).body) as Seen;

  before(async () => {
    server = createServer((incoming, response) => void respond(incoming, response)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const values = { "Addresses.Gateway": "/ip4/127.0.0.1/tcp/0", "Discovery.MDNS.Enabled": false };
    const modules = { modules_enabled: ["http", "http_api", "http_gateway"] };
    [client, peer] = await Promise.all([
      startOnline({ ...values, "Experimental.P2pHttpProxy": true }, modules),
      startOnline({ ...values, "Experimental.Libp2pStreamMounting": true }),
    ]);
    const facts = await peer.value<{ ID: string; Addresses: readonly string[] }>("id");
    id = facts.ID;
    await client.call(`swarm/connect?arg=${facts.Addresses[0]}`);
    const target = `/ip4/127.0.0.1/tcp/${(server.address() as AddressInfo).port}`;
    await peer.call(`p2p/listen?arg=/http&arg=${target}&allow-custom-protocol=true`);
    await peer.call(`p2p/listen?arg=/x/notes/http&arg=${target}`);
  });
  after(async () => {
    await Promise.all(hosts().map((host) => host?.stop()));
    server.closeAllConnections();
    server.close();
  });

  test("a service gets the path, query and headers of the client, without headers about the connection", async () => {
    const received = await seen(`/p2p/${id}/http/a%2520b/%2Fc/?x=1&y=%20z`, {
      cookie: "a=b",
      authorization: "Bearer x",
      connection: "close, x-hop",
      "x-hop": "1",
      te: "trailers",
      "proxy-authorization": "secret",
      "x-forwarded-for": "9.9.9.9",
      "x-forwarded-host": "elsewhere.example",
      forwarded: "for=9.9.9.9",
      // With these spellings the headers do not apply to the body, and do not identify the client.
      content_length: "9",
      transfer_encoding: "chunked",
      "x.real.ip": "9.9.9.9",
    });
    assert.deepEqual([received.method, received.url], ["GET", "/a%2520b/%2Fc/?x=1&y=%20z"]);
    assert.deepEqual(received.headers, {
      host: id,
      cookie: "a=b",
      authorization: "Bearer x",
      // The address of the client itself, as reported by the proxy on this machine, which is
      // trusted.
      "x-forwarded-for": "9.9.9.9",
      via: "1.1 modhost",
      connection: "close",
    });
    assert.equal((await seen(`/p2p/${id}/x/notes/http/`)).url, "/");
    for (const method of ["DELETE", "OPTIONS", "PATCH"])
      assert.equal((await seen(`/p2p/${id}/http/m`, {}, method)).method, method);
    assert.equal((await ask(`/p2p/${id}/http/m`, {}, "HEAD")).status, 200);
    assert.equal((await seen(`/p2p/${id}/http/n`, { host: `localhost:${port()}` })).url, "/n");
  });

  test("bodies of any size are streamed in both directions", async () => {
    const outgoing = request({ port: port(), host: "127.0.0.1", path: `/p2p/${id}/http/up`, method: "POST" });
    for (let sent = 0; sent < 4; sent += 1) if (!outgoing.write(Buffer.alloc(MIB))) await once(outgoing, "drain");
    outgoing.end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    assert.equal((JSON.parse(String(Buffer.concat(await incoming.toArray()))) as Seen).length, 4 * MIB);
    const sized = await seen(`/p2p/${id}/http/up`, { "content-length": "0", "content-encoding": "gzip" }, "PUT");
    assert.deepEqual([sized.length, sized.headers["content-encoding"]], [0, "gzip"]);
    assert.equal((await ask(`/p2p/${id}/http/large`)).body.length, 4 * MIB);
  });

  test("no stream stays open after a response, even if the service keeps it open or does not speak HTTP", async (t) => {
    const lasting = listenTo((socket) => {
      socket.once("data", (bytes) => {
        const isKnownPath = String(bytes).startsWith("GET /ok");
        socket.write(isKnownPath ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi" : "HTTP/1.1 099 No\r\n\r\n");
      });
    });
    t.after(() => lasting.close());
    await once(lasting, "listening");
    const target = `/ip4/127.0.0.1/tcp/${(lasting.address() as AddressInfo).port}`;
    await hosts()[1].call(`p2p/listen?arg=/x/lasting/http&arg=${target}`);
    const ended: Promise<unknown>[] = [];
    lasting.on(
      "connection",
      (socket: Socket) => void ended.push(new Promise((resolve) => socket.once("close", resolve))),
    );
    assert.equal((await ask(`/p2p/${id}/x/lasting/http/ok`)).body, "hi");
    assert.equal((await ask(`/p2p/${id}/x/lasting/http/wrong`)).status, 502);
    await Promise.all(ended);
    await eventually("no stream is open", async () =>
      (await hosts()[1].call("p2p/stream/ls")).text.includes('"Streams":null'),
    );
  });

  test("status, headers and trailers of the service are relayed", async () => {
    const own = await ask(`/p2p/${id}/http/own`);
    assert.deepEqual([own.status, own.body, own.cut], [418, "tea", false]);
    assert.deepEqual(own.headers["set-cookie"], ["a=1", "b=2"]);
    assert.deepEqual([own.headers["x-hop"], own.headers["access-control-allow-origin"]], [undefined, undefined]);
    assert.match(own.headers.trailer ?? "", /^x-sum$/i);
    // A peer must not set headers that affect the whole origin.
    assert.deepEqual([own.headers["clear-site-data"], own.headers["service-worker-allowed"]], [undefined, undefined]);
  });

  test("a service that does not respond is 502, a partial response is cut off, and a path without a peer is 400", async () => {
    const nobody = "12D3KooWK99VoVxNE7XzyBwXEzW7xhK7Gpv85r9F3V3fyKSUKPH5";
    for (const path of [`${id}/http/reset`, `${id}/x/none/http/a`, `${nobody}/http/a`]) {
      const { status, body } = await ask(`/p2p/${path}`);
      assert.equal(status, 502, path);
      assert.match(body, /did not respond at \//);
    }
    const self = (await hosts()[0].value<{ ID: string }>("id")).ID;
    assert.equal((await ask(`/p2p/${self}/http/a`)).status, 502);
    assert.equal((await ask(`/p2p/${id}/http/half`)).cut, true);
    for (const path of ["", id, `${id}/`, `${id}/http`, `${id}/foo/http/a`, `${id}/x/http/a`, "nobody/http/a"]) {
      const { status, body } = await ask(`/p2p/${path}`);
      assert.equal(status, 400, path);
      assert.match(body, /^failed to parse request: Invalid request path/);
    }
    const via = Array.from({ length: 9 }, () => "1.1 modhost").join(", ");
    assert.equal((await ask(`/p2p/${id}/http/a`, { via })).status, 508);
  });

  test("the gateway's time limits apply, hosts need /p2p among their paths, and the experiment can be switched off", async () => {
    await set("Gateway.RetrievalTimeout", "50ms");
    assert.equal((await ask(`/p2p/${id}/http/silent`)).status, 504);
    await set("Gateway.RetrievalTimeout", "1h");
    await set("Gateway.MaxRequestDuration", "50ms");
    assert.equal((await ask(`/p2p/${id}/http/silent`)).status, 504);
    // This is longer than a timer of Node.js supports.
    await set("Gateway.MaxRequestDuration", "1000h");
    await set("Gateway.PublicGateways", { "gw.example": { Paths: ["/ipfs"] }, "all.example": { Paths: ["/p2p"] } });
    const at = async (host: string) => (await ask(`/p2p/${id}/http/a`, { host })).status;
    assert.deepEqual([await at("gw.example"), await at("all.example"), await at("unknown.invalid")], [404, 200, 200]);
    await set("Experimental.P2pHttpProxy", false);
    assert.equal((await ask(`/p2p/${id}/http/a`)).status, 404);
    await set("Experimental.P2pHttpProxy", true);
    assert.equal((await ask(`/p2p/${id}/http/a`)).status, 200);
  });
});
