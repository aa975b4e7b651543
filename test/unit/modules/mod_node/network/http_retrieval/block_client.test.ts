import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createSecureServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import { type BlockClient, blockClient, type ClientOptions } from "#node/network/http_retrieval/block_client.ts";
import { blockOf } from "../bitswap/support.ts";

const { cid } = blockOf(Buffer.from("some bytes"));
const signal = () => AbortSignal.timeout(60_000);

/** A client of a server on loopback that responds as the test defines. */
async function client(
  t: TestContext,
  respond: RequestListener,
  options: Partial<ClientOptions> = {},
  host = "127.0.0.1",
): Promise<BlockClient> {
  const server = createServer(respond).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const ip = host === "127.0.0.1" ? host : undefined;
  const made = blockClient(
    { origin: `http://${host}:${port}`, name: host, host, ip },
    { maxBlockSize: 1000, workers: 2, insecure: false, mayDial: () => true, ...options },
  );
  t.after(() => {
    made.close();
    server.closeAllConnections();
    server.close();
  });
  return made;
}

test("a block is requested as the specification of trustless gateways defines", async (t) => {
  const requests: unknown[] = [];
  const gateway = await client(t, ({ method, url, headers }, response) => {
    requests.push([method, url, headers.accept]);
    response.end("some bytes");
  });
  assert.deepEqual(await gateway.get(cid, signal()), { kind: "block", bytes: Buffer.from("some bytes") });
  assert.deepEqual(await gateway.has(cid, signal()), { kind: "present" });
  const accept = "application/vnd.ipld.raw";
  assert.deepEqual(requests, [
    ["GET", `/ipfs/${cid}?format=raw`, accept],
    ["HEAD", `/ipfs/${cid}?format=raw`, accept],
  ]);
});

test("a probe requests the empty block, and a server that sends bytes for it is not a gateway", async (t) => {
  const paths: (string | undefined)[] = [];
  let body = "";
  const gateway = await client(t, ({ url }, response) => {
    paths.push(url);
    response.end(body);
  });
  assert.equal((await gateway.probe()).kind, "block");
  body = "<html>";
  assert.equal((await gateway.probe()).kind, "fault");
  assert.deepEqual([...new Set(paths)], ["/ipfs/bafkqaaa?format=raw"]);
});

test("an endless response, and one that announces too many bytes, are aborted", async (t) => {
  const closed = Promise.withResolvers<void>();
  const endless = await client(t, (_request, response) => {
    response.on("close", () => closed.resolve());
    const more = () => {
      while (!response.destroyed && response.write(Buffer.alloc(300)));
    };
    response.on("drain", more);
    more();
  });
  assert.equal((await endless.get(cid, signal())).kind, "fault");
  await closed.promise;
  const large = await client(t, (_request, response) => {
    response.writeHead(200, { "content-length": 1001 }).flushHeaders();
  });
  assert.equal((await large.get(cid, signal())).kind, "fault");
});

test("a missing block and a redirect count as absent, and a response may ask to retry later", async (t) => {
  const responses: [number, Record<string, string>][] = [
    [404, {}],
    [410, {}],
    [302, { location: "http://127.0.0.1:1/" }],
    [429, { "retry-after": "7" }],
    [503, {}],
  ];
  const gateway = await client(t, (_request, response) => {
    const [status, headers] = responses.shift() as [number, Record<string, string>];
    response.writeHead(status, headers).end("why");
  });
  for (let at = 0; at < 3; at++) assert.deepEqual(await gateway.get(cid, signal()), { kind: "absent" });
  assert.deepEqual(await gateway.get(cid, signal()), { kind: "later", after: 7000 });
  assert.deepEqual(await gateway.get(cid, signal()), { kind: "later", after: undefined });
});

test("a connection that ends within the block is a failure, and so is a missing server", async (t) => {
  const gateway = await client(t, (_request, response) => {
    response.writeHead(200, { "content-length": 500 });
    response.write("half", () => response.destroy());
  });
  assert.equal((await gateway.get(cid, signal())).kind, "failed");
  const nobody = blockClient(
    { origin: "http://127.0.0.1:1", name: "nobody", host: "127.0.0.1", ip: "127.0.0.1" },
    { maxBlockSize: 1000, workers: 2, insecure: false, mayDial: () => true },
  );
  t.after(() => nobody.close());
  assert.equal((await nobody.probe()).kind, "failed");
});

test("a request for which an HTTP/2 server has no stream ends with its signal", { timeout: 120_000 }, async (t) => {
  const { certificate: cert, key } = await makeSelfSigned(["127.0.0.1"]);
  const server = createSecureServer({ cert, key, settings: { maxConcurrentStreams: 0 } }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = "127.0.0.1";
  const origin = `https://${host}:${(server.address() as AddressInfo).port}`;
  const options = { maxBlockSize: 1000, workers: 2, insecure: true, mayDial: () => true };
  const gateway = blockClient({ origin, name: origin, host, ip: host }, options);
  t.after(() => {
    gateway.close();
    server.close();
  });
  const connected = once(server, "session") as Promise<[ServerHttp2Session]>;
  const first = new AbortController();
  const requests = [gateway.get(cid, first.signal)];
  const [session] = await connected;
  await once(session, "localSettings");
  first.abort();
  for (let at = 0; at < 3; at += 1) {
    const next = new AbortController();
    requests.push(gateway.get(cid, next.signal));
    await new Promise((resolve) => session.ping(resolve));
    next.abort();
  }
  for (const outcome of await Promise.all(requests)) assert.equal(outcome.kind, "failed");
});

test("a name that resolves to a forbidden address is not connected to", async (t) => {
  let requests = 0;
  const count: RequestListener = (_request, response) => {
    requests += 1;
    response.end();
  };
  const refused = await client(t, count, { mayDial: (ip) => !/^(127\.|::1$)/.test(ip) }, "localhost");
  const outcome = await refused.probe();
  assert.equal(outcome.kind, "failed");
  assert.match((outcome as { reason: string }).reason, /no address that may be dialled/);
  assert.equal(requests, 0);
});
