import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Module, Server } from "#core/types.ts";
import { pendingKeysHeader } from "#modules/mod_http_api/http/config_waits.ts";
import { createIdentity } from "#node/storage/repo/identity.ts";
import { eventually } from "#test/support/eventually.ts";
import { type RpcHost, startRpc } from "../commands/support.ts";
import { ask, multipart } from "../support.ts";

let host: RpcHost;
let server: Server;
before(async () => {
  const operator = (module: Module) => {
    server = module.server;
  };
  host = await startRpc({}, { modules: { mod_operator: operator } });
});
after(() => host?.stop());

const until = (condition: () => boolean | Promise<boolean>) => eventually(String(condition), condition);
const file = () => join(host.folder, "data", "repo", "config");
const set = (key: string, value: unknown, headers: Record<string, string> = {}) =>
  ask(host.http, `config?arg=${key}&arg=${encodeURIComponent(JSON.stringify(value))}&json=true`, { headers });
const waitsIn = ({ headers }: { readonly headers: Readonly<Record<string, string>> }) =>
  headers["x-modhost-config-waits"];
const statusOf = () => server.status();

test("a header of API.HTTPHeaders is sent from the next response on", async () => {
  await set("API.HTTPHeaders", { "X-Tried": ["yes"] });
  assert.equal((await ask(host.http, "version")).headers["x-tried"], "yes");
  await set("API.HTTPHeaders", {});
  assert.equal((await ask(host.http, "version")).headers["x-tried"], undefined);
});

test("API.Authorizations apply from the next call on, and stop applying when they are removed", async () => {
  await set("API.Authorizations", { me: { AuthSecret: "bearer:abc", AllowedPaths: ["/api/v0"] } });
  assert.equal((await ask(host.http, "id")).status, 403);
  const headers = { authorization: "Bearer abc" };
  assert.equal((await ask(host.http, "id", { headers })).status, 200);
  assert.equal((await set("API.Authorizations", {}, headers)).status, 200);
  assert.equal((await ask(host.http, "id")).status, 200);
});

test("keys that take effect at the next start are in a header next to the unchanged response, and in the status", async () => {
  const before = JSON.parse((await ask(host.http, "config/show")).body);
  assert.equal(waitsIn(await ask(host.http, "config/show")), undefined);
  const document = JSON.parse(await readFile(file(), "utf8"));
  await writeFile(file(), JSON.stringify({ ...document, Identity: await createIdentity() }));
  await until(async () => waitsIn(await ask(host.http, "config/show")) === "Identity.PeerID, Identity.PrivKey");
  assert.match(statusOf().warnings.join(), /Identity.PeerID waits for the next start/);
  await writeFile(file(), JSON.stringify(document));
  await until(async () => waitsIn(await ask(host.http, "config/show")) === undefined);
  assert.equal(statusOf().warnings.join().includes("Identity.PeerID"), false);
  assert.deepEqual(JSON.parse((await ask(host.http, "config/show")).body), before);
});

test("a live value that cannot be applied gets the usual response, with the reason in the header", async () => {
  const response = await set("Datastore.GCPeriod", "often");
  assert.equal(response.status, 200);
  assert.deepEqual(JSON.parse(response.body), { Key: "Datastore.GCPeriod", Value: "often" });
  await set("Datastore.GCPeriod", "1h");
});

test("config/replace and a profile are in force with their response", async () => {
  const document = JSON.parse((await ask(host.http, "config/show")).body);
  const content = JSON.stringify({ ...document, API: { HTTPHeaders: { "X-Replaced": ["1"] } } });
  assert.equal((await ask(host.http, "config/replace", multipart([{ filename: "config", content }]))).status, 200);
  assert.equal((await ask(host.http, "version")).headers["x-replaced"], "1");
  await set("API.HTTPHeaders", {});
});

test("modhost reload also applies the node's file", async () => {
  const document = JSON.parse(await readFile(file(), "utf8"));
  const { config } = host.host.exports<{ lowLevel: { repo: { config: { value(path: string): unknown } } } }>("node")
    .lowLevel.repo;
  await writeFile(file(), JSON.stringify({ ...document, DNS: { Resolvers: { "a.": "https://a" } } }));
  await server.apply();
  await until(() => JSON.stringify(config.value("DNS.Resolvers")) === '{"a.":"https://a"}');
});

test("reasons are structured fields, whatever they contain", () => {
  const keys = [
    { key: "Routing.Type", reason: undefined },
    { key: "Addresses.Swarm", reason: 'the "port"\n\\ is taken — é' },
  ];
  assert.equal(pendingKeysHeader(keys), 'Routing.Type, Addresses.Swarm;reason="the \\"port\\"?\\\\ is taken ? ?"');
});
