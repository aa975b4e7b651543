/**
 * The API at both levels at the same time, on one node (options `api_level` and `api_listeners`).
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { extraListenersFrom } from "#modules/mod_http_api/http/extra_listeners.ts";
import { type RpcHost, startRpc } from "../commands/support.ts";
import { ask, multipart } from "../support.ts";

const EMPTY = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const MISSING = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy";

describe("two levels on one node", () => {
  let host: RpcHost;
  let port: number;
  before(async () => {
    host = await startRpc({
      api_listeners: [
        { address: "/ip4/127.0.0.1/tcp/0", level: "0.43" },
        { mount: "/kubo/api/v0", level: 0.43 },
      ],
      api_tokens: { secret: { paths: ["/api/v0/version"] } },
    });
    port = host.host.listening().find(({ service }) => service === "http_api_place_0")?.port ?? 0;
  });
  after(() => host?.stop());

  const then = (path: string, options?: Parameters<typeof ask>[2]) => ask(host.http, path, options);
  const atKubo043 = (path: string, options?: Parameters<typeof ask>[2]) => ask(port, path, options);
  const mounted = (path: string, options?: Parameters<typeof ask>[2]) =>
    ask(host.http, `/kubo/api/v0/${path}`, options);

  test("both levels report their own version, at their addresses and mounts", async () => {
    const [old, one, other] = await Promise.all([then("version"), atKubo043("version"), mounted("version")]);
    assert.deepEqual(
      [old, one, other].map(({ headers }) => headers.server),
      ["go-ipfs/0.9.0", "kubo/0.43.0", "kubo/0.43.0"],
    );
    assert.deepEqual(
      [old, one, other].map(({ body }) => JSON.parse(body).Version),
      ["0.9.0", "0.43.0", "0.43.0"],
    );
    assert.deepEqual(
      [old, one].map(({ body }) => JSON.parse(body).Repo),
      ["11", "18"],
    );
  });

  test("both levels have their own redirects and checks", async () => {
    assert.equal((await then("files/../id")).status, 301);
    assert.equal((await atKubo043("files/../id")).status, 307);
    const ask43 = await atKubo043("id", { headers: { "User-Agent": "/kubo/0.8.0/" } });
    assert.equal(ask43.body, "api version mismatch (/kubo/0.43.0/ != /kubo/0.8.0/)\n");
    assert.equal((await then("id", { headers: { "User-Agent": "/kubo/0.8.0/" } })).status, 200);
    const preflight = {
      method: "OPTIONS",
      headers: {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
        Origin: `http://127.0.0.1:${port}`,
      },
    };
    const granted = await atKubo043("id", preflight);
    assert.equal(granted.status, 204);
    assert.equal(granted.headers.vary, "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    assert.equal(granted.headers["access-control-allow-headers"], "content-type");
    assert.equal((await then("id", preflight)).status, 200);
    assert.equal((await then(`block/stat?x=1;arg=${EMPTY}`)).status, 200);
    assert.equal((await atKubo043(`block/stat?x=1;arg=${EMPTY}`)).body, 'argument "cid" is required\n');
    assert.equal((await atKubo043("version?api-auth=bearer:x&repo-dir=y")).status, 200);
  });

  test("both levels give bytes their own content type", async () => {
    const types = await Promise.all([
      then(`block/get?arg=${EMPTY}`),
      atKubo043(`block/get?arg=${EMPTY}`),
      mounted(`get?arg=${EMPTY}&compress=true&archive=true`),
      atKubo043(`get?arg=${EMPTY}`),
    ]);
    assert.deepEqual(
      types.map(({ headers }) => headers["content-type"]),
      ["text/plain", "application/vnd.ipld.raw", "application/gzip", "application/x-tar"],
    );
  });

  test("both levels have their own error messages", async () => {
    const expectedOf = async (response: ReturnType<typeof ask>) => JSON.parse((await response).body).Message;
    assert.equal(await expectedOf(then(`block/get?arg=${MISSING}`)), "blockservice: key not found");
    assert.equal(
      await expectedOf(atKubo043(`block/get?arg=${MISSING}`)),
      `block was not found locally (offline): ipld: could not find ${MISSING}`,
    );
    assert.equal(await expectedOf(atKubo043("ls?arg=bad")), 'invalid path "bad": path does not have enough components');
    assert.equal(await expectedOf(atKubo043("object/get")), "removed, use 'ipfs dag' or 'ipfs files' instead");
    assert.equal((await atKubo043("urlstore/add?arg=x")).status, 404);
  });

  test("a call of a later client at 0.9 that would be misread names the option", async () => {
    for (const path of [`dag/get?arg=${EMPTY}&output-codec=dag-json`, `dag/stat?arg=${EMPTY}&arg=${EMPTY}`]) {
      const { status, body } = await then(path);
      assert.equal(status, 400, path);
      assert.match(body, /api_level: "0.43"/);
    }
    const message = multipart([{ filename: "m", content: "hello" }]);
    assert.match((await then(`pubsub/pub?arg=${topic("news")}`, message)).body, /api_level/);
    assert.match((await then(`pubsub/sub?arg=${topic("news")}`)).body, /api_level/);
    assert.doesNotMatch((await then("pubsub/sub?arg=updates")).body, /api_level/);
  });

  test("a token for a path opens it at every listener, and no other path", async () => {
    const headers = { Authorization: "Bearer secret" };
    assert.equal((await mounted("version", { headers })).status, 200);
    assert.equal((await mounted("id", { headers })).status, 403);
  });
});

const topic = (name: string) => `u${Buffer.from(name).toString("base64url")}`;

describe("the option api_listeners", () => {
  test("the option api_listeners accepts addresses and mounts", () => {
    assert.deepEqual(extraListenersFrom([{ mount: "/kubo/api/v0", level: 0.43 }]), [{ level: "0.43", base: "/kubo" }]);
    assert.deepEqual(extraListenersFrom([{ address: "/unix/run/a.sock", level: "0.9" }]), [
      { level: "0.9", address: "/unix/run/a.sock", endpoint: { path: "/run/a.sock" } },
    ]);
  });

  for (const [what, option, message] of [
    ["no list", { level: "0.43" }, /it must be a list/],
    ["no level", [{ mount: "/kubo/api/v0" }], /level is "0.9" or "0.43"/],
    ["an unknown level", [{ mount: "/kubo/api/v0", level: "1" }], /level is "0.9" or "0.43"/],
    ["both places", [{ mount: "/a/api/v0", address: "/ip4/127.0.0.1/tcp/1", level: "0.9" }], /\{ address, level \}/],
    ["a field of another name", [{ mount: "/a/api/v0", level: "0.9", port: 1 }], /\{ address, level \}/],
    ["a mount elsewhere", [{ mount: "/kubo", level: "0.43" }], /ends with \/api\/v0/],
    ["no address", [{ address: "127.0.0.1:5001", level: "0.43" }], /\/ip4\/127\.0\.0\.1\/tcp\/5001/],
    [
      "a place twice",
      [
        { mount: "/a/api/v0", level: "0.9" },
        { mount: "/a/api/v0", level: "0.43" },
      ],
      /occurs twice/,
    ],
  ] as const) {
    test(`the option api_listeners refuses ${what}`, () => assert.throws(() => extraListenersFrom(option), message));
  }
});
