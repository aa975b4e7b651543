import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { createTestHost } from "#core/testing/index.ts";
import type { MadeToken, Module, NewToken, ServerTokens } from "#core/types.ts";
import { scopes as adminScopes } from "#modules/mod_http_admin/scopes.ts";
import { scopes as rpcScopes } from "#modules/mod_http_api/scopes.ts";
import { scopes as metricsScopes } from "#modules/mod_http_openmetrics/scopes.ts";
import { eventually } from "#test/support/eventually.ts";
import { declaring } from "#test/support/token_scopes.ts";
import { callAt } from "#test/unit/modules/mod_http_admin/support.ts";
import { folderOf, pluginHost } from "../../module/support.ts";

/** A server with apps that require tokens, and a function that creates some. */
async function served(t: TestContext, config: Record<string, unknown> = {}) {
  let tokens: ServerTokens | undefined;
  const called: string[] = [];
  const running = await createTestHost({
    config: { modules_enabled: ["http_log"], ...config },
    modules: [
      declaring(...rpcScopes, ...adminScopes, ...metricsScopes),
      function mod_http_chat(module: Module) {
        module.depends("http");
        tokens = module.server.tokens;
        module.provides("http", {
          auth: "token",
          route: {
            GET: ({ request }) => `for ${request.token?.name}`,
            "GET /stream": () => ({
              body: (async function* () {
                for (;;) {
                  yield Buffer.alloc(1000);
                  await sleep(10);
                }
              })(),
            }),
            "POST /in": ({ request }) => {
              called.push(request.body);
              return `${request.body.length}`;
            },
            "GET /folder/": "in it",
            "WS /ws": async (event) => {
              for await (const message of event.accept()) called.push(String(message));
            },
          },
        });
      },
      function mod_http_shared(module: Module) {
        module.depends("http");
        module.provides("http", { auth: { scope: "chat" }, route: { GET: "shared" } });
        module.provides("http", { default_path: "/open", name: "open", route: { GET: "open" } });
      },
    ],
  });
  t.after(() => running.stop());
  const secretOf = async (wanted: Partial<NewToken> = {}) => {
    const made = await (tokens as ServerTokens).create({ name: "anna", scopes: ["app:chat"], ...wanted });
    return made.secret;
  };
  const ask = (path: string, secret?: string, init: RequestInit = {}) =>
    running.fetch(path, {
      ...init,
      headers: { ...init.headers, ...(secret === undefined ? {} : { Authorization: `Bearer ${secret}` }) },
    });
  return { running, tokens: tokens as unknown as ServerTokens, called, secretOf, ask };
}

describe("an app that requires tokens", () => {
  test("is logged with the name of the token, and never with its secret", async (t) => {
    const file = join(await folderOf(t, {}), "requests.log");
    const { running, ask, secretOf } = await served(t, { http_log: true, http_log_file: file });
    const secret = await secretOf();
    await ask("/chat", secret);
    await ask("/chat", `${secret}x`);
    await ask("/chat");
    await running.unload("http_log");
    const lines = await readFile(file, "utf8");
    const names = lines
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).token as unknown);
    assert.deepEqual(names, ["anna", undefined, undefined]);
    assert.ok(!lines.includes(secret.slice(-32)));
  });

  test("is called with a token of its scope, and sees the token's name", async (t) => {
    const { ask, secretOf } = await served(t);
    const secret = await secretOf();
    assert.equal(await (await ask("/chat", secret)).text(), "for anna");
    assert.equal(await (await ask("/shared", secret)).text(), "shared");
    assert.equal(await (await ask("/open")).text(), "open");
  });

  test("refuses others before it is called: 401 without a token, 403 without the scope", async (t) => {
    const { ask, secretOf, called } = await served(t);
    const secret = await secretOf({ scopes: ["app:other", "rpc:*", "admin", "metrics", "mfs:/"] });
    const upload = { method: "POST", body: "secret" };
    for (const path of ["/chat", "/chat/folder", "/chat/folder/", "/%63hat", "/shared"]) {
      const nobody = await ask(path);
      assert.deepEqual([nobody.status, nobody.headers.get("www-authenticate")], [401, 'Bearer realm="modhost"'], path);
      const other = await ask(path, secret);
      assert.equal(other.status, 403);
      assert.match(other.headers.get("www-authenticate") ?? "", /error="insufficient_scope", scope="app:chat"/);
      assert.match(await other.text(), /The token anna lacks the scope app:chat/);
    }
    assert.equal((await ask("/chat/in", undefined, upload)).status, 401);
    assert.equal((await ask("/chat/in", secret, upload)).status, 403);
    const forged = await ask("/chat", `${secret.slice(0, -1)}!`);
    assert.match(forged.headers.get("www-authenticate") ?? "", /error="invalid_token"/);
    const basic = { Authorization: `Basic ${Buffer.from(`x:${await secretOf({ name: "b" })}`).toString("base64")}` };
    assert.equal((await ask("/chat", undefined, { headers: basic })).status, 401, "browsers send it by themselves");
    assert.deepEqual(called, []);
  });

  test("refuses requests over the rate or the quota, and says when to retry", async (t) => {
    const { ask, secretOf } = await served(t);
    const slow = await secretOf({ rate: "1/h", burst: 2 });
    assert.deepEqual([(await ask("/chat", slow)).status, (await ask("/chat", slow)).status], [200, 200]);
    const late = await ask("/chat", slow);
    assert.equal(late.status, 429);
    assert.ok(Number(late.headers.get("retry-after")) > 3500);
    const small = await secretOf({ name: "small", bytes_in: "10B" });
    const upload = (body: string) => ask("/chat/in", small, { method: "POST", body });
    assert.equal((await upload("x".repeat(11))).status, 403);
    assert.equal((await upload("12345678")).status, 200);
    assert.equal((await upload("123")).status, 403);
    assert.equal((await upload("12")).status, 200);
  });

  test("has a stream cut when its token is revoked, and when a quota is used up", async (t) => {
    const { ask, secretOf, tokens } = await served(t);
    const read = async (secret: string, meanwhile?: () => unknown) => {
      const response = await ask("/chat/stream", secret);
      assert.equal(response.status, 200);
      await meanwhile?.();
      await assert.rejects(response.arrayBuffer());
    };
    const secret = await secretOf();
    await read(secret, () => tokens.revoke("anna"));
    assert.equal((await ask("/chat", secret)).status, 401);
    await read(await secretOf({ name: "small", bytes_out: "20kB" }));
    await read(await secretOf({ name: "short", expires: "2s" }));
    const [small] = tokens.list().filter(({ name }) => name === "small");
    const sent = small?.sent ?? 0;
    assert.ok(sent >= 20_000 && sent <= 22_000, `${sent} bytes: it ends with the piece that goes beyond the quota`);
  });

  test("requires a token for a websocket, too, and closes it with 1008 when the token is revoked", async (t) => {
    const { running, secretOf, tokens, called } = await served(t);
    const url = running.url("/chat/ws").replace("http", "ws");
    const refused = new WebSocket(url);
    const [error] = await once(refused, "error");
    assert.match(String(error), /401/);
    const socket = new WebSocket(url, { headers: { Authorization: `Bearer ${await secretOf()}` } });
    await once(socket, "open");
    socket.send("hello");
    await eventually("the message has come", () => called.length > 0, { every: 5 });
    await tokens.revoke("anna");
    const [code, reason] = await once(socket, "close");
    assert.deepEqual([code, String(reason)], [1008, "the token is no longer valid"]);
  });

  test("is protected by the host also when its module is isolated, and sees the token's name", async (t) => {
    const text = `export const isolated = true;
      export const depends = ["http"];
      export default (module) => module.provides("http", {
        auth: "token",
        route: {
          GET: ({ request }) => JSON.stringify([request.token.name, request.token.scopes]),
          "WS /ws": async (event) => { for await (const text of event.accept()) void text; },
        },
      });`;
    const words = `export default (module) => void module.provides("token-scope", {
      kind: "words", forms: [], parse: (text) => text, covers: () => false, describe: () => "words",
    });`;
    const config = { modules_enabled: ["http_admin", "http_apart", "words"] };
    const running = await pluginHost(t, { "mod_http_apart.js": text, "mod_words.js": words }, config);
    const make = async (scopes: string) =>
      (await callAt<MadeToken>(join(running.folder, "admin.sock"), "POST", "/tokens", { name: scopes[4], scopes }))
        .value;
    const { secret } = await make("app:apart,words:/t\u00e9\u{1f600}");
    const { secret: other } = await make("app:other");
    const ask = async (given?: string) =>
      running.fetch("/apart", { headers: given === undefined ? {} : { Authorization: `Bearer ${given}` } });
    assert.deepEqual([(await ask()).status, (await ask(other)).status], [401, 403]);
    assert.deepEqual(await (await ask(secret)).json(), ["a", ["app:apart", "words:/t\u00e9\u{1f600}"]]);
    const url = running.url("/apart/ws").replace("http", "ws");
    const [error] = await once(new WebSocket(url), "error");
    assert.match(String(error), /401/);
    const socket = new WebSocket(url, { headers: { Authorization: `Bearer ${secret}` } });
    await once(socket, "open");
    await callAt(join(running.folder, "admin.sock"), "POST", "/tokens/a/revoke");
    await once(socket, "close");
    assert.equal((await ask(secret)).status, 401);
  });

  test("is refused when its `auth` is invalid", async () => {
    for (const auth of [
      "basic",
      true,
      { scope: "a b" },
      { scopes: ["a"] },
      { need: { name: "a" } },
      { need: { kind: "app" }, scope: "a" },
    ]) {
      const modules = [
        function mod_http_wrong(module: Module) {
          module.depends("http");
          module.provides("http", { auth: auth as never, route: { GET: "x" } });
        },
      ];
      await assert.rejects(
        createTestHost({ modules, listen: false }),
        /auth must be "token", \{ scope: "name" \}, or \{ need: /,
      );
    }
  });
});
