import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type AuthorizationEntry, authorizationsFrom } from "#modules/mod_http_api/http/authorizations.ts";
import { tokensFrom } from "#modules/mod_http_api/http/tokens.ts";
import { type Commands, readCommand, value } from "#modules/mod_http_api/rpc/command.ts";
import { type ApiHost, ask, startApi } from "../support.ts";

const command = readCommand({ help: "x", returns: value("string"), run: () => "in" });
const group = { help: "x", options: {} };
const commands: Commands = {
  version: command,
  "version/deps": command,
  id: command,
  pin: group,
  "pin/ls": command,
  "pin/lsx": command,
};

const base64 = (text: string) => Buffer.from(text).toString("base64");

const entries: Readonly<Record<string, AuthorizationEntry | null>> = {
  all: { AuthSecret: "bearer:everything", AllowedPaths: ["/api/v0"] },
  pins: { AuthSecret: "bearer:pins", AllowedPaths: ["/api/v0/pin/ls"] },
  user: { AuthSecret: "basic:ann:a:b", AllowedPaths: ["/api/v0"] },
  encoded: { AuthSecret: `basic:${base64("bob:word")}`, AllowedPaths: ["/api/v0"] },
  pathless: { AuthSecret: "bearer:nowhere", AllowedPaths: null },
  bare: { AuthSecret: "rawtoken", AllowedPaths: ["/api/v0"] },
  other: { AuthSecret: "digest:hashed", AllowedPaths: ["/api/v0"] },
  empty: { AuthSecret: "", AllowedPaths: ["/api/v0"] },
  none: null,
};

const denied =
  "Kubo RPC Access Denied: Please provide a valid authorization token as defined in the API.Authorizations configuration.\n";

let guarded: ApiHost;
/** A host that has the authorizations of `guarded`, and tokens of the operator. */
let both: ApiHost;

before(async () => {
  const authorizations = authorizationsFrom(entries, () => undefined);
  guarded = await startApi([commands], { authorizations });
  both = await startApi([commands], { authorizations, tokens: tokensFrom({ mine: { paths: ["/api/v0/id"] } }) });
});
after(() => Promise.all([guarded, both].map((host) => host?.stop())));

const withAuthorization = (authorization?: string, headers: Record<string, string> = {}, method = "POST") => ({
  method,
  headers: { ...headers, ...(authorization === undefined ? {} : { Authorization: authorization }) },
});

describe("API.Authorizations of the node's config", () => {
  const refused: [what: string, path: string, authorization: string | undefined][] = [
    ["no secret", "id", undefined],
    ["no secret, for the version", "version", undefined],
    ["an unknown secret", "id", "Bearer x"],
    ["a known one in another scheme", "id", "Basic everything"],
    ["another letter case of the scheme", "id", "bearer everything"],
    ["another letter case of the secret", "id", "Bearer Everything"],
    ["the scheme of the config", "id", "bearer:everything"],
    ["more after the secret", "id", "Bearer everything x"],
    ["a secret of other paths", "id", "Bearer pins"],
    ["a secret of no paths", "id", "Bearer nowhere"],
    ["version/deps is another path than version", "version/deps", "Bearer pins"],
    ["a token without its scheme", "id", "rawtoken"],
    ["a scheme that is not known", "id", "digest:hashed"],
    ["a scheme that is not known, as bearer", "id", "Bearer hashed"],
    ["an empty header", "id", ""],
    ["a password that is cut", "id", `Basic ${base64("ann:a")}`],
    ["what is not there", "no/such", undefined],
  ];
  for (const [what, path, authorization] of refused) {
    test(`API.Authorizations refuse ${what}`, async () => {
      const reply = await ask(guarded.http, path, withAuthorization(authorization));
      assert.deepEqual([reply.status, reply.body], [403, denied]);
      const { "content-type": type, "x-content-type-options": sniff, vary, server } = reply.headers;
      assert.deepEqual([type, sniff, vary, server], ["text/plain; charset=utf-8", "nosniff", undefined, undefined]);
    });
  }

  const allowed: [what: string, path: string, authorization: string][] = [
    ["a bearer token", "id", "Bearer everything"],
    ["a token that has no scheme in the config", "id", "Bearer rawtoken"],
    ["user and password, of which only the first colon parts", "id", `Basic ${base64("ann:a:b")}`],
    ["user and password that are encoded in the config", "id", `Basic ${base64("bob:word")}`],
    ["a path that a prefix opens", "pin/ls?arg=x", "Bearer pins"],
    ["a longer word, as prefixes are plain text", "pin/lsx", "Bearer pins"],
    ["an escaped path", "pin%2Fls", "Bearer pins"],
    ["the version, for any known secret", "version", "Bearer nowhere"],
  ];
  for (const [what, path, authorization] of allowed) {
    test(`API.Authorizations allow ${what}`, async () => {
      const { status, body } = await ask(guarded.http, path, withAuthorization(authorization));
      assert.deepEqual([status, body], [200, '"in"\n']);
    });
  }

  test("a secret authorizes calls from other machines, through proxies and by any host name", async () => {
    const headers = { Host: "node.example", "X-Forwarded-For": "203.0.113.7" };
    assert.equal((await ask(guarded.http, "id", withAuthorization("Bearer everything", headers))).status, 200);
    assert.equal((await ask(guarded.http, "id", withAuthorization(undefined, headers))).status, 403);
  });

  test("the secret is checked after the redirects and the client's version, and before everything else", async () => {
    const statusOf = async (...call: Parameters<typeof ask>) => (await ask(...call)).status;
    assert.equal(await statusOf(guarded.http, "/api/v0", withAuthorization()), 301);
    assert.equal(await statusOf(guarded.http, "/api/v0//id", withAuthorization()), 301);
    assert.equal(
      await statusOf(guarded.http, "id", withAuthorization(undefined, { "User-Agent": "/go-ipfs/0.8.0/" })),
      400,
    );
    for (const method of ["GET", "OPTIONS", "PUT"])
      assert.equal(await statusOf(guarded.http, "id", withAuthorization(undefined, {}, method)), 403);
    const preflight = { Origin: `http://127.0.0.1:${guarded.http}`, "Access-Control-Request-Method": "POST" };
    assert.equal(await statusOf(guarded.http, "id", withAuthorization(undefined, preflight, "OPTIONS")), 403);
    assert.equal(await statusOf(guarded.http, "id", withAuthorization("Bearer everything", {}, "GET")), 405);
    const stranger = { Origin: "http://evil.example" };
    assert.equal(await statusOf(guarded.http, "id", withAuthorization("Bearer everything", stranger)), 403);
  });

  test("the description of the API is open to everyone with a secret", async () => {
    const document = (authorization?: string) =>
      ask(guarded.http, "/api/openapi.json", withAuthorization(authorization, {}, "GET"));
    assert.equal((await document()).status, 403);
    assert.equal((await document("Bearer nowhere")).status, 200);
  });

  test("tokens of the operator work next to secrets of the config", async () => {
    const call = (path: string, authorization?: string) => ask(both.http, path, withAuthorization(authorization));
    assert.equal((await call("id", "Bearer mine")).status, 200);
    const other = await call("pin/ls", "Bearer mine");
    assert.deepEqual([other.status, other.body], [403, "403 - Forbidden: that token is for other paths\n"]);
    assert.equal((await call("pin/ls", "Bearer pins")).status, 200);
    assert.equal((await call("id", "Bearer pins")).body, denied);
    assert.equal((await call("id", "Bearer wrong")).body, denied);
    assert.equal((await call("id")).body, denied);
  });

  test("a config with unusable entries only lets nobody in, and a warning names them", () => {
    const warnings: string[] = [];
    const known = authorizationsFrom({ other: entries.other ?? null, none: null }, (sentence) =>
      warnings.push(sentence),
    );
    assert.deepEqual(known, []);
    assert.match(
      warnings[0] ?? "",
      /^API\.Authorizations\.other\.AuthSecret matches no caller: it must be bearer:TOKEN/,
    );
    assert.equal(warnings.length, 2);
    assert.ok(!warnings.join().includes("hashed"));
  });

  test("without entries, no authorization is required", () => {
    const silent = () => undefined;
    assert.deepEqual([authorizationsFrom(null, silent), authorizationsFrom({}, silent)], [undefined, undefined]);
  });
});
