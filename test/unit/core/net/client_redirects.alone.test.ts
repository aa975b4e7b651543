import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { new_client, request } from "#core/net/http.ts";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import { echo, echoPeer, failure, httpPeer, type Peer, textOf } from "./peers.ts";

let peer: Peer;
before(async () => {
  peer = await echoPeer();
});
after(async () => peer[Symbol.asyncDispose]());

describe("a redirect", () => {
  interface Seen {
    readonly method: string | undefined;
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
  }
  let other: Peer;
  let first: Peer;
  let seen: Seen[];
  before(async () => {
    other = await httpPeer(async (incoming, response) => {
      seen.push({ method: incoming.method, headers: incoming.headers, body: await textOf(incoming) });
      response.end("other");
    });
    first = await httpPeer(async (incoming, response) => {
      const [, code, ...rest] = (incoming.url ?? "").split("/");
      const target = decodeURIComponent(rest.join("/"));
      seen.push({ method: incoming.method, headers: incoming.headers, body: await textOf(incoming) });
      if (code === "end") response.end("end");
      else response.writeHead(Number(code), { location: target }).end("moved");
    });
  });
  after(async () => {
    await first[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
  });
  const path = (code: number, target: string) => `${first.url}/${code}/${encodeURIComponent(target)}`;

  test("is a result by default", async () => {
    seen = [];
    const { code, headers, body } = await request(path(302, "/end"));
    assert.deepEqual([code, headers.location, body], [302, "/end", "moved"]);
  });

  test("is followed as often as the option follow says", async () => {
    seen = [];
    await using client = new_client({ follow: 2 });
    const { body, request: sent } = await client.request(path(302, path(301, "/end")));
    assert.deepEqual([body, sent.url, seen.length], ["end", `${first.url}/end`, 3]);
    await failure("too-many-redirects", client.request(path(302, path(301, "/end")), { follow: 1 }));
  });

  const rules: [code: number, method: string, after: string, body: string][] = [
    [301, "POST", "GET", ""],
    [302, "POST", "GET", ""],
    [303, "POST", "GET", ""],
    [303, "PUT", "GET", ""],
    [301, "PUT", "PUT", "a=b"],
    [307, "POST", "POST", "a=b"],
    [308, "POST", "POST", "a=b"],
    [303, "HEAD", "HEAD", ""],
  ];
  for (const [code, method, then, body] of rules) {
    test(`with ${code} after a ${method} becomes a ${then}`, async () => {
      seen = [];
      const sent = method === "HEAD" ? {} : { body: "a=b" };
      await request(path(code, "/end"), { method, ...sent, follow: 1 });
      assert.deepEqual([seen[1]?.method, seen[1]?.body], [then, body]);
      assert.equal(seen[1]?.headers["content-type"] !== undefined, body !== "");
    });
  }

  test("keeps secrets within the origin, and removes them for another origin", async () => {
    seen = [];
    const headers = { cookie: "a=1", host: "first.example", x_marker: "yes" };
    const url = (target: string) => path(302, target).replace("//", "//user:secret@");
    await request(url("/end"), { headers, follow: 1 });
    assert.match(seen[1]?.headers.authorization ?? "", /^Basic /);
    assert.deepEqual([seen[1]?.headers.cookie, seen[1]?.headers.host], ["a=1", "first.example"]);
    await request(url(`${other.url}/`), { headers, follow: 1 });
    const { authorization, cookie, host, "x-marker": marker } = seen[3]?.headers ?? {};
    assert.deepEqual([authorization, cookie, host, marker], [undefined, undefined, other.url.slice(7), "yes"]);
  });

  test("sends text, bytes and forms again, but no stream", async () => {
    seen = [];
    const form = new FormData();
    form.set("a", "b");
    for (const body of ["a=b", Buffer.alloc(100_000), form]) await request(path(307, "/end"), { body, follow: 1 });
    assert.deepEqual(seen.filter(({ body }) => body === "").length, 0);
    await failure("body-not-replayable", request(path(307, "/end"), { body: Readable.from(["x"]), follow: 1 }));
    assert.equal((await request(path(303, "/end"), { body: Readable.from(["x"]), follow: 1 })).body, "end");
  });

  test("to a URL that is not HTTP is refused, and one without a location is a result", async () => {
    seen = [];
    for (const target of ["file:///etc/passwd", "javascript:x", "http://[", "ftp://u:secret@h/"]) {
      const error = await failure("bad-redirect", request(path(302, target), { follow: 5 }));
      assert.doesNotMatch(String(error.details.target), /secret/);
    }
    await using plain = await httpPeer((_, response) => response.writeHead(302).end());
    assert.equal((await request(plain.url, { follow: 5 })).code, 302);
  });
});

describe("a client", () => {
  test("uses a connection again, and opens no more at a time than it may", async () => {
    let running = 0;
    let most = 0;
    await using server = await httpPeer((_, response) => {
      most = Math.max(most, ++running);
      setImmediate(() => {
        running--;
        response.end();
      });
    });
    await using client = new_client({ connections: 2 });
    for (let round = 0; round < 10; round++) {
      await client.request(server.url);
      await new Promise(setImmediate);
    }
    assert.equal(server.accepted, 1);
    await Promise.all(Array.from({ length: 20 }, () => client.request(server.url)));
    assert.deepEqual([most, server.accepted], [2, 2]);
  });

  test("has defaults that a request can override", async () => {
    await using client = new_client({ headers: { x_a: "1", "X-B": "2" }, max_body: 10 });
    await failure("too-large", client.request(peer.url));
    const options = { max_body: Number.POSITIVE_INFINITY, headers: { "x-a": "3" } };
    const { headers } = echo(await client.request(peer.url, options));
    assert.deepEqual([headers["x-a"], headers["x-b"]], ["3", "2"]);
  });

  test("cannot be created with invalid options", () => {
    assert.throws(() => new_client({ connections: 0 }), TypeError);
    assert.throws(() => new_client({ body: "x" } as object), /no option body/);
  });

  test("fails open requests when it is closed, and leaves no socket", async () => {
    await using server = await httpPeer(({ url }, response) => {
      if (url === "/body") response.write("first");
      if (url === "/") response.end();
    });
    const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
    const before = sockets();
    const client = new_client();
    await client.request(`${server.url}/`);
    const headless = client.request(`${server.url}/never`);
    const { body } = await client.request(`${server.url}/body`, { response_type: "stream" });
    assert.ok(sockets() > before);
    const results = Promise.all([failure("client-closed", headless), failure("client-closed", body.toArray())]);
    await client.close();
    await results;
    await server.idle();
    assert.ok(sockets() <= before);
    await failure("client-closed", client.request(server.url));
    await client.close();
  });

  test("uses HTTP/2 if it may and the server can", async () => {
    const { certificate, key } = await makeSelfSigned(["127.0.0.1"]);
    const server = createSecureServer({ cert: certificate, key, allowHTTP1: true }, async (incoming, response) => {
      response.writeHead(200, { "x-version": incoming.httpVersion });
      response.end(Buffer.concat(await incoming.toArray()));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const large = "x".repeat(1_000_000);
    for (const [http2, version] of [
      [true, "2"],
      [false, "1.1"],
    ] as const) {
      await using client = new_client({ http2, ca: certificate });
      const { http_version, headers, body } = await client.request(url, { body: large });
      assert.deepEqual([http_version, headers["x-version"]], [version, version === "2" ? "2.0" : "1.1"]);
      assert.equal(body, large);
    }
    server.close();
    await once(server, "close");
  });
});
