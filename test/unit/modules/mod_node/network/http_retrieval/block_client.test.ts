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

/** A client of a server on loopback, which answers as the test says. */
async function client(
  t: TestContext,
  answer: RequestListener,
  options: Partial<ClientOptions> = {},
  host = "127.0.0.1",
): Promise<BlockClient> {
  const server = createServer(answer).listen(0, "127.0.0.1");
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

test("a block is asked for as the specification of trustless gateways says", async (t) => {
  const asked: unknown[] = [];
  const gateway = await client(t, ({ method, url, headers }, response) => {
    asked.push([method, url, headers.accept]);
    response.end("some bytes");
  });
  assert.deepEqual(await gateway.get(cid, signal()), { kind: "block", bytes: Buffer.from("some bytes") });
  assert.deepEqual(await gateway.has(cid, signal()), { kind: "present" });
  const accept = "application/vnd.ipld.raw";
  assert.deepEqual(asked, [
    ["GET", `/ipfs/${cid}?format=raw`, accept],
    ["HEAD", `/ipfs/${cid}?format=raw`, accept],
  ]);
});

test("a probe asks for the empty block, and one that has bytes for it is no gateway", async (t) => {
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

test("an endless answer, and one that is announced too large, are cut off", async (t) => {
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

test("what is not there, and a redirect, is absent; what is for later says when", async (t) => {
  const answers: [number, Record<string, string>][] = [
    [404, {}],
    [410, {}],
    [302, { location: "http://127.0.0.1:1/" }],
    [429, { "retry-after": "7" }],
    [503, {}],
  ];
  const gateway = await client(t, (_request, response) => {
    const [status, headers] = answers.shift() as [number, Record<string, string>];
    response.writeHead(status, headers).end("why");
  });
  for (let at = 0; at < 3; at++) assert.deepEqual(await gateway.get(cid, signal()), { kind: "absent" });
  assert.deepEqual(await gateway.get(cid, signal()), { kind: "later", after: 7000 });
  assert.deepEqual(await gateway.get(cid, signal()), { kind: "later", after: undefined });
});

test("a connection that ends within the block is a failure, and so is a server that is not there", async (t) => {
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

test("a request that a server of HTTP/2 leaves no stream for ends with its signal", { timeout: 120_000 }, async (t) => {
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
  const asked = [gateway.get(cid, first.signal)];
  const [session] = await connected;
  await once(session, "localSettings");
  first.abort();
  for (let at = 0; at < 3; at += 1) {
    const next = new AbortController();
    asked.push(gateway.get(cid, next.signal));
    await new Promise((resolve) => session.ping(resolve));
    next.abort();
  }
  for (const outcome of await Promise.all(asked)) assert.equal(outcome.kind, "failed");
});

test("a name that leads to an address that may not be dialled is not connected to", async (t) => {
  let asked = 0;
  const count: RequestListener = (_request, response) => {
    asked += 1;
    response.end();
  };
  const refused = await client(t, count, { mayDial: (ip) => !/^(127\.|::1$)/.test(ip) }, "localhost");
  const outcome = await refused.probe();
  assert.equal(outcome.kind, "failed");
  assert.match((outcome as { reason: string }).reason, /no address that may be dialled/);
  assert.equal(asked, 0);
});
