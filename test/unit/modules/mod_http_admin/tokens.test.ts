import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import type { Change, DeclaredTokenScope, MadeToken, TokenInfo } from "#core/types.ts";
import { scopes as rpcScopes } from "#modules/mod_http_api/scopes.ts";
import { declaring } from "#test/support/token_scopes.ts";
import { ran } from "#test/unit/core/cli/called.ts";
import { folderOf } from "#test/unit/core/module/support.ts";
import { adminHost, callAt } from "./support.ts";

async function host(t: TestContext) {
  const config = { modules_enabled: ["http_admin", "http_health", "http_openmetrics"] };
  const running = await adminHost(t, { config, modules: [declaring(...rpcScopes)] });
  const bearing = (secret: string) => ({ Authorization: `Bearer ${secret}`, "Content-Type": "application/json" });
  const through = async (path: string, secret: string, method = "GET", host = "far.example") => {
    const headers = { ...bearing(secret), Host: host };
    return running.ask({ path: `/admin/api${path}`, method, headers, remote_address: "192.0.2.7" });
  };
  const make = async (name: string, scopes: string, more = {}) =>
    (await running.call<MadeToken>("POST", "/tokens", { name, scopes, ...more })).value;
  return { ...running, through, make };
}

describe("tokens of the Admin API", () => {
  test("are created, listed and revoked in the running server, and each change is recorded", async (t) => {
    const { call, make, folder } = await host(t);
    const { token, secret } = await make("deploy", "admin, metrics", { expires: "30d", rate: "10/s" });
    assert.deepEqual([token.name, token.scopes, token.rate], ["deploy", ["admin", "metrics"], "10/s"]);
    const { value: listed } = await call<TokenInfo[]>("GET", "/tokens");
    assert.deepEqual(
      listed.map(({ name }) => name),
      ["deploy"],
    );
    const again = await call<{ error: { code: string } }>("POST", "/tokens", { name: "deploy", scopes: "admin" });
    assert.deepEqual([again.status, again.value.error.code], [409, "exists"]);
    const wrong = await call<{ error: { message: string } }>("POST", "/tokens", { name: "x", scopes: "all" });
    assert.equal(wrong.status, 400);
    assert.match(
      wrong.value.error.message,
      /The scopes of a token cannot be "all": it must be one of app:NAME, .*admin, admin:read, metrics, rpc:GROUP, .*, \*$/,
    );
    assert.equal((await call("POST", "/tokens/deploy/revoke")).status, 200);
    assert.equal((await call("POST", "/tokens/deploy/revoke")).status, 404);
    const { value: changes } = await call<Change[]>("GET", "/changes");
    assert.deepEqual(
      changes.map(({ what, result }) => [what, result]),
      [
        ["create the token deploy (admin, metrics)", "done"],
        ["create the token deploy (admin)", "refused"],
        ["create the token x (all)", "refused"],
        ["revoke the token deploy", "done"],
        ["revoke the token deploy", "refused"],
      ],
    );
    assert.ok(!JSON.stringify(changes).includes(secret.slice(-32)));
    assert.ok(!(await readFile(join(folder, "tokens.json"), "utf8")).includes("deploy"));
  });

  test("permit what their scopes say, from anywhere, and are named in the record", async (t) => {
    const { make, through } = await host(t);
    const admin = (await make("deploy", "admin")).secret;
    const reading = (await make("dash", "admin:read")).secret;
    const other = (await make("ci", "rpc:*,app:*,metrics,mfs:/")).secret;
    const reloaded = await through("/modules/http_health/reload", admin, "POST");
    assert.deepEqual([reloaded.status, reloaded.json<Change>().by], [200, "token deploy"]);
    assert.equal((await through("/status", reading)).status, 200);
    const refused = await through("/modules/http_health/reload", reading, "POST");
    assert.equal(refused.status, 403);
    assert.match(refused.body, /needs the scope admin/);
    const lacking = await through("/status", other);
    assert.equal(lacking.status, 403);
    assert.match(lacking.body, /The token ci lacks the scope admin:read/);
    assert.match(String(lacking.headers["www-authenticate"]), /insufficient_scope/);
    const made = await through("/tokens", reading, "POST");
    assert.equal(made.status, 403, "a token for reading cannot create tokens");
  });

  test("that are forged, revoked or over their rate are refused everywhere", async (t) => {
    const { make, through, call } = await host(t);
    const { secret } = await make("deploy", "admin", { rate: "1/h" });
    assert.equal((await through("/status", secret)).status, 200);
    const fast = await through("/status", secret);
    assert.equal(fast.status, 429);
    assert.ok(Number(fast.headers["retry-after"]) > 3000);
    assert.equal((await through("/status", secret.toLowerCase())).status, 401);
    await call("POST", "/tokens/deploy/revoke");
    const gone = await through("/status", secret, "GET", "localhost");
    assert.equal(gone.status, 401, "also where no token is needed");
    assert.match(String(gone.headers["www-authenticate"]), /error="invalid_token"/);
  });
});

describe("modhost token", () => {
  test("creates, lists and revokes tokens of the running server", async (t) => {
    const { folder, through } = await host(t);
    const cwd = await folderOf(t, { "modhost.config.json": JSON.stringify({ data_path: folder }) });
    const made = await ran(cwd, ["token", "new", "ci", "admin:read", "rpc:add,metrics", "--expires=30d", "--json"]);
    assert.equal(made.code, 0, made.stderr);
    const { secret, token } = JSON.parse(made.stdout) as MadeToken;
    assert.deepEqual([token.by, token.scopes], ["admin socket", ["admin:read", "rpc:add", "metrics"]]);
    assert.equal((await through("/status", secret)).status, 200);
    const listed = await ran(cwd, ["token", "list", "--no-json"]);
    assert.match(
      listed.stdout,
      /^NAME +ID +EXPIRES +LAST USED +REQUESTS +SCOPES\nci +\w{10} +20.*Z +20.*Z +1 +admin:read/,
    );
    const revoked = await ran(cwd, ["token", "revoke", "ci", "--no-json"]);
    assert.match(revoked.stdout, /^The token ci \(\w{10}\) is revoked\n$/);
    assert.equal((await through("/status", secret)).status, 401);
    const again = await ran(cwd, ["token", "revoke", "ci"]);
    assert.deepEqual([again.code, again.stderr], [1, "modhost: There is no token ci: modhost token list shows all\n"]);
  });

  test("edits the file if no server runs, says so, and a server reads it when it starts", async (t) => {
    const modules_enabled = ["http_admin", "http_openmetrics"];
    const data = await folderOf(t, {});
    const cwd = await folderOf(t, { "modhost.config.json": JSON.stringify({ data_path: data, modules_enabled }) });
    const made = await ran(cwd, ["token", "new", "ci", "metrics", "--no-json"]);
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stderr, /no server runs here, so this command uses the file .*tokens\.json/);
    assert.match(made.stdout, /^mht_\w+\n/);
    const audit = JSON.parse(await readFile(join(data, "audit.jsonl"), "utf8")) as Change;
    assert.deepEqual(
      [audit.what, audit.by],
      ["create the token ci (metrics)", `uid ${process.getuid?.()} without a server`],
    );
    assert.match((await ran(cwd, ["token", "list", "--no-json"])).stdout, /\nci /);
    await adminHost(t, { config: { data_path: data } });
    const { value } = await callAt<TokenInfo[]>(join(data, "admin.sock"), "GET", "/tokens");
    assert.deepEqual(
      value.map(({ name }) => name),
      ["ci"],
    );
  });

  test("lists the scopes of the running server, or the scopes that it would have if none runs", async (t) => {
    const { folder, make } = await host(t);
    await make("ci", "rpc:add");
    const modules_enabled = ["http_admin", "http_openmetrics"];
    const cwd = await folderOf(t, { "modhost.config.json": JSON.stringify({ data_path: folder, modules_enabled }) });
    const listed = await ran(cwd, ["token", "scopes", "--no-json"]);
    assert.match(listed.stdout, /^SCOPE +MODULE +PERMITS\napp:NAME +apps that require/);
    assert.match(listed.stdout, /\nadmin:read +http_admin +everything that the Admin API shows/);
    assert.match(listed.stdout, /\nrpc:GROUP +scopes_of_others +the commands/);
    assert.equal((await ran(cwd, ["unload", "scopes_of_others"])).code, 0);
    assert.match(
      (await ran(cwd, ["token", "list", "--no-json"])).stdout,
      /rpc:add {2}\(not declared by a loaded module: rpc:add\)/,
    );
    const elsewhere = await folderOf(t, {});
    const alone = await folderOf(t, {
      "modhost.config.json": JSON.stringify({ data_path: elsewhere, modules_enabled }),
    });
    const offline = JSON.parse((await ran(alone, ["token", "scopes", "--json"])).stdout) as DeclaredTokenScope[];
    assert.deepEqual(
      offline.map(({ form }) => form),
      ["app:NAME", "admin", "admin:read", "metrics", "*"],
    );
  });

  test("refuses unknown groups of the RPC, also if no server runs", async (t) => {
    const data = await folderOf(t, {});
    const config = { data_path: data, modules_enabled: ["http", "http_admin", "node", "http_api"] };
    const cwd = await folderOf(t, { "modhost.config.json": JSON.stringify(config) });
    const { code, stderr } = await ran(cwd, ["token", "new", "ci", "rpc:pin", "rpc:pinn"]);
    assert.equal(code, 1, stderr);
    assert.match(stderr, /scopes of a token cannot be "rpc:pinn": it must be rpc:\* or rpc: with one of .*pin/);
    assert.equal((await ran(cwd, ["token", "new", "ci", "rpc:pin:read"])).code, 0);
    assert.deepEqual((await readdir(data)).sort(), ["audit.jsonl", "tokens.json"]);
  });

  test("wrong arguments are refused with the valid ones", async (t) => {
    const cwd = await folderOf(t, {});
    for (const words of [[], ["make"], ["new"], ["new", "x"], ["revoke"], ["new", "x", "metrics", "--burst=many"]]) {
      const { code, stderr } = await ran(cwd, ["token", ...words]);
      assert.equal(code, 2, stderr);
    }
  });
});
