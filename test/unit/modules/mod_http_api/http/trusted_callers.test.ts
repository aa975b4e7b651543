/**
 * Option `api_trusted_callers`: a proxy needs no token because of the address of its connection,
 * and nobody else is trusted.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { tokensFrom } from "#modules/mod_http_api/http/tokens.ts";
import { type Commands, readCommand, value } from "#modules/mod_http_api/rpc/command.ts";
import { startHost } from "#test/support/host.ts";
import { type ApiHost, type AskOptions, ask, startApi } from "../support.ts";

const commands: Commands = { ls: readCommand({ help: "x", returns: value("string"), run: () => "in" }) };
const proxied = { "X-Forwarded-For": "192.0.2.7" };
const relaysOf =
  (...known: readonly string[]) =>
  (address: string) =>
    known.includes(address);

describe("api_trusted_callers", () => {
  let named: ApiHost;
  let other: ApiHost;
  let strict: ApiHost;
  before(async () => {
    const settings = { tokens: tokensFrom(["secret"]), relays: relaysOf("127.0.0.1") };
    named = await startApi([commands], { ...settings, hosts: new Set(["cluster.example"]) });
    other = await startApi([commands], { ...settings, relays: relaysOf("192.0.2.7") });
    strict = await startApi([commands], { ...settings, requireToken: true, authorizations: [] });
  });
  after(() => Promise.all([named, other, strict].map((host) => host?.stop())));

  const statusOf = async (host: ApiHost, headers: AskOptions["headers"] = {}) =>
    (await ask(host.http, "ls", { headers })).status;

  test("a call that a trusted caller forwards is accepted", async () => {
    assert.equal(await statusOf(named, proxied), 200);
    assert.equal(
      await statusOf(named, { ...proxied, Forwarded: "for=192.0.2.7", Via: "1.1 x", "X-Real-IP": "x" }),
      200,
    );
    assert.equal(
      await statusOf(named, { ...proxied, Host: "10.1.2.3:9095" }),
      200,
      "a page has no name for an address",
    );
    assert.equal(await statusOf(named, { ...proxied, Host: "cluster.example:9095" }), 200);
  });

  test("trusted callers are also accepted if others need a token or one of API.Authorizations", async () => {
    assert.deepEqual([await statusOf(strict), await statusOf(strict, proxied)], [200, 200]);
  });

  test("no header makes a caller trusted", async () => {
    for (const headers of [
      { "X-Forwarded-For": "192.0.2.7" },
      { "X-Forwarded-For": "192.0.2.7, 127.0.0.1" },
      { Forwarded: "for=192.0.2.7" },
      { "X-Real-IP": "192.0.2.7" },
      { X_Forwarded_For: "192.0.2.7" },
    ]) {
      assert.equal(await statusOf(other, headers), 403, JSON.stringify(headers));
    }
    assert.equal(await statusOf(other), 200, "a program of this machine, as ever");
  });

  test("a page of another origin is not trusted through them, and a wrong secret is refused", async () => {
    assert.equal(await statusOf(named, { ...proxied, Host: "evil.example" }), 403);
    assert.equal(await statusOf(named, { ...proxied, Origin: "http://evil.example" }), 403);
    assert.equal(await statusOf(named, { ...proxied, Authorization: "Bearer wrong" }), 403);
  });

  test("an invalid entry names the option", async () => {
    const config = {
      modules_enabled: ["http", "http_api"],
      node_offline: true,
      api_trusted_callers: ["cluster.example"],
    };
    await assert.rejects(async () => {
      await using _ = await startHost({ config: { ...config, https_ports: [] } });
    }, /api_trusted_callers/);
  });
});
