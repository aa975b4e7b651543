import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { base36 } from "multiformats/bases/base36";
import { CID } from "multiformats/cid";
import { parsePeerId, peerIdEncoder } from "#node/index.ts";
import { fixtures } from "#test/contract/gateway/replay.ts";
import { provided, type RoutingPair, startRoutingPair } from "./pair.ts";

const nowhere = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";
const nobody = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
const recordType = "application/vnd.ipfs.ipns-record";

interface Found {
  readonly Schema: string;
  readonly ID: string;
  readonly Addrs: readonly string[];
}

describe("delegated routing over two nodes", () => {
  let pair: RoutingPair;
  before(async () => {
    pair = await startRoutingPair();
  });
  after(() => pair?.[Symbol.asyncDispose]());

  const ask = (path: string, init: RequestInit = {}) => fetch(`${pair.url}/routing/v1/${path}`, init);
  const found = async (path: string, member: string) =>
    ((await (await ask(path)).json()) as Record<string, readonly Found[]>)[member] ?? [];
  const recordOfOther = () => ({ Schema: "peer", ID: pair.otherId, Addrs: [pair.address], Protocols: [] });

  test("providers of a block are listed as JSON and line by line", async () => {
    const cid = await provided(pair.other, "who has it?");
    const record = recordOfOther();
    const response = await ask(`providers/${cid}`);
    assert.deepEqual(await response.json(), { Providers: [record] });
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.match(response.headers.get("cache-control") ?? "", /^public, max-age=300, stale-while-revalidate=172800/);
    const streamed = await ask(`providers/${cid}`, {
      headers: { accept: "application/x-ndjson, application/json;q=0.8" },
    });
    assert.equal(streamed.headers.get("content-type"), "application/x-ndjson");
    assert.equal(await streamed.text(), `${JSON.stringify(record)}\n`);
    assert.deepEqual(await found(`providers/${cid}?filter-addrs=ws`, "Providers"), []);
    assert.deepEqual(await found(`providers/${cid}?filter-addrs=tcp&filter-protocols=unknown`, "Providers"), [record]);
    const head = await ask(`providers/${cid}`, { method: "HEAD", headers: { accept: "application/x-ndjson" } });
    assert.deepEqual([head.status, await head.text()], [200, ""]);
  });

  test("a node that has the block itself responds with its current addresses", async () => {
    const { gatewayHost } = pair;
    const cid = await provided(gatewayHost, "I have it");
    const { ID, Addresses } = await gatewayHost.value<{ ID: string; Addresses: readonly string[] }>("id");
    const own = Addresses.map((address) => address.replace(/\/p2p\/.*/, ""));
    const record = { Schema: "peer", ID, Addrs: own, Protocols: [] };
    assert.deepEqual(await found(`providers/${cid}`, "Providers"), [record]);
    const gateway = "/dns/gateway.example/tcp/443/tls/http";
    const announce = (value: unknown) =>
      gatewayHost.call(
        `config?arg=Addresses.AppendAnnounce&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`,
      );
    await announce([gateway]);
    assert.deepEqual(await found(`providers/${cid}`, "Providers"), [{ ...record, Addrs: [...own, gateway] }]);
    await announce(null);
  });

  test("peers are found by base58 and by CID, and the closest peers by any key", async () => {
    const record = recordOfOther();
    const { otherId } = pair;
    const cid = peerIdEncoder("base36")(parsePeerId(otherId));
    // Helia encodes keys in base32.
    const base32 = CID.parse(cid, base36).toString();
    for (const key of [otherId, cid, base32]) assert.deepEqual(await found(`peers/${key}`, "Peers"), [record]);
    assert.deepEqual(await found(`peers/${nobody}`, "Peers"), []);
    for (const key of [nowhere, nobody, cid, base32]) {
      assert.deepEqual(await found(`dht/closest/peers/${key}`, "Peers"), [record]);
    }
  });

  test("a valid record is stored, published and served, and an invalid one is rejected", async () => {
    const { other, otherId } = pair;
    const { lines } = await other.call("key/gen?arg=page&type=ed25519&ipns-base=base36");
    const name = (lines[0] as { Id: string }).Id;
    const put = (body: NonNullable<RequestInit["body"]>, type = recordType) =>
      ask(`ipns/${name}`, { method: "PUT", body, headers: { "content-type": type } });
    assert.match(await (await ask(`ipns/${name}`)).text(), /not found/);
    const publish = (text: string) =>
      other.call(`name/publish?arg=/ipfs/${text}&key=page&resolve=false&allow-offline=true&ttl=90s`);
    await publish(nowhere);
    const response = await ask(`ipns/${name}`, { headers: { accept: recordType } });
    assert.equal(response.headers.get("content-type"), recordType);
    assert.match(response.headers.get("cache-control") ?? "", /^public, max-age=90, stale-while-revalidate=\d+/);
    const first = Buffer.from(await response.arrayBuffer());
    const etag = response.headers.get("etag") as string;
    const inBase32 = await ask(`ipns/${CID.parse(name, base36)}`);
    assert.deepEqual(Buffer.from(await inBase32.arrayBuffer()), first);
    assert.equal((await ask(`ipns/${name}`, { headers: { "if-none-match": etag } })).status, 304);

    assert.deepEqual([(await put(first)).status, (await put(first, "application/json")).status], [200, 406]);
    const broken = Buffer.from(first);
    broken[broken.length - 40] = (broken[broken.length - 40] as number) ^ 1;
    assert.equal((await put(broken)).status, 400);
    assert.equal((await put(Buffer.alloc(20_000))).status, 413);
    const init = { method: "PUT", headers: { "content-type": recordType } };
    const stranger = fixtures.keys.one as string;
    assert.equal((await ask(`ipns/${stranger}`, { ...init, body: first })).status, 400);
    const theirs = Buffer.from(fixtures.records.one as string, "base64");
    assert.equal((await ask(`ipns/${stranger}`, { ...init, body: theirs })).status, 200);
    const resolved = await other.value<{ Path: string }>(`name/resolve?arg=${stranger}`);
    assert.equal(resolved.Path, `/ipfs/${fixtures.cids.site}`);
    assert.equal((await ask(`ipns/${otherId}`)).status, 400);

    await publish("bafkqaaa");
    const second = Buffer.from(await (await ask(`ipns/${name}`)).arrayBuffer());
    assert.notDeepEqual(second, first);
    assert.equal((await put(second)).status, 200);
    const old = await put(first);
    assert.deepEqual([old.status, /older value/.test(await old.text())], [400, true]);
  });

  test("invalid requests are refused with a reason, and browsers get the CORS headers", async () => {
    const status = async (path: string, init: RequestInit = {}) => (await ask(path, init)).status;
    assert.equal(await status("providers/nonsense"), 400);
    assert.equal(await status("peers/nonsense"), 400);
    assert.equal(await status("dht/closest/peers/nonsense"), 400);
    assert.equal(await status("constructor/x"), 400);
    assert.equal(await status(`providers/${nowhere}`, { headers: { accept: "text/html" } }), 406);
    const post = await ask(`providers/${nowhere}`, { method: "POST", body: "{}" });
    assert.deepEqual([post.status, post.headers.get("allow")], [501, "GET, HEAD, OPTIONS"]);
    const preflight = await ask("ipns/x", { method: "OPTIONS" });
    assert.equal(preflight.headers.get("access-control-allow-methods"), "GET, HEAD, OPTIONS, PUT");
    assert.equal(preflight.headers.get("access-control-allow-origin"), "*");
  });
});
