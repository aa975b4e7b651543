import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { decode, encode } from "@dnsquery/dns-packet";
import { createTxtLookup, resolverOf } from "#node/network/ipns/dns_txt.ts";

type FakeResponse = { readonly status?: number; readonly code?: number; readonly records?: readonly string[][] };

/** Starts a resolver on loopback; returns its URL and the names that were requested. */
async function resolver(
  t: TestContext,
  respond: (name: string) => FakeResponse,
): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? "", "http://x").searchParams.get("dns") ?? "";
    const { questions = [] } = decode(Buffer.from(query, "base64url"));
    const name = questions[0]?.name ?? "";
    requests.push(`${request.headers.accept} ${questions[0]?.type} ${name}`);
    const { status = 200, code = 0, records = [] } = respond(name);
    const responses = records.map((data) => ({ type: "TXT" as const, name, data }));
    response.writeHead(status).end(encode({ type: "response", flags: code, questions, answers: responses }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/dns-query`, requests };
}

test("records are fetched over HTTPS from the resolver of the domain, and their strings are joined", async (t) => {
  const { url, requests } = await resolver(t, () => ({ records: [["dnslink=", "/ipfs/x"], ["other"]] }));
  const lookUp = createTxtLookup(() => ({ "test.": url }));
  assert.deepEqual(await lookUp("_dnslink.a.test.", undefined), ["dnslink=/ipfs/x", "other"]);
  assert.deepEqual(requests, ["application/dns-message TXT _dnslink.a.test"]);
});

test("a name that does not exist has no records; a failing resolver is named in the error", async (t) => {
  const { url } = await resolver(t, (name) => ({ none: { code: 3 }, broken: { code: 2 } })[name] ?? { status: 503 });
  const lookUp = createTxtLookup(() => ({ ".": url }));
  const origin = new URL(url).origin;
  assert.deepEqual(await lookUp("none.", undefined), []);
  await assert.rejects(lookUp("broken.", undefined), { message: `the resolver ${origin} responded with code 2` });
  await assert.rejects(lookUp("other.", undefined), { message: `the resolver ${origin} responded with status 503` });
});

/**
 * Starts a server on loopback that sends as many bytes as the client accepts, or does not respond
 * at all; returns its URL.
 */
async function flood(
  t: TestContext,
  answers: boolean,
): Promise<{ url: string; sent: () => number; gone: Promise<void> }> {
  let sent = 0;
  const gone = Promise.withResolvers<void>();
  const server = createServer(async (_, response) => {
    response.on("close", gone.resolve);
    if (!answers) return;
    while (!response.destroyed && sent < 64 * 1024 * 1024) {
      sent += 65_536;
      if (!response.write(Buffer.alloc(65_536))) await Promise.race([once(response, "drain"), gone.promise]);
    }
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/dns-query`;
  return { url, sent: () => sent, gone: gone.promise };
}

test("a response that is too long is refused", async (t) => {
  const { url, sent, gone } = await flood(t, true);
  const { origin } = new URL(url);
  const message = `the resolver ${origin} sent more than 65535 bytes`;
  await assert.rejects(createTxtLookup(() => ({ ".": url }))("x.", undefined), { message });
  await gone;
  assert.ok(sent() < 32 * 1024 * 1024, `${sent()} bytes were sent`);
});

test("a request to an unresponsive resolver ends at the timeout or with the signal", async (t) => {
  const { url } = await flood(t, false);
  const message = `the resolver ${new URL(url).origin} did not respond`;
  await assert.rejects(createTxtLookup(() => ({ ".": url }), 50)("x.", undefined), { message });
  const left = AbortSignal.abort(new Error("called off"));
  await assert.rejects(createTxtLookup(() => ({ ".": url }))("x.", left), { message: "called off" });
});

test("the resolver of the longest domain is asked; an empty one is the system's", () => {
  const resolvers = { ".": "all", "eth.": "eth", "a.eth.": "a", "local.": "" };
  const expected = { "x.y.": "all", "eth.": "eth", "b.eth.": "eth", "x.a.eth.": "a", "ba.eth.": "eth", "X.LOCAL.": "" };
  for (const [name, resolver] of Object.entries(expected)) assert.equal(resolverOf(name, resolvers), resolver, name);
  assert.equal(resolverOf("x.", {}), "");
});
