import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createTestHost, type TestHost } from "#core/testing/index.ts";
import type { Module, NewToken, ServerTokens } from "#core/types.ts";
import { table } from "#modules/mod_http_api/commands/index.ts";
import { type CommandNode, isCommand } from "#modules/mod_http_api/rpc/command.ts";

let host: TestHost;
let tokens: ServerTokens;
let content: string;
let made = 0;

before(async () => {
  host = await createTestHost({
    config: {
      modules_enabled: ["http_api", "http_admin", "http_openmetrics"],
      node_offline: true,
      api_tokens: { old: {}, narrow: { paths: ["/api/v0/id"] } },
    },
    modules: [
      function mod_make(module: Module) {
        tokens = module.server.tokens;
      },
    ],
  });
  const added = await upload("add?pin=false", "hello");
  content = JSON.parse(added.body).Hash;
  for (const dir of ["/team/a/in", "/team/ab", "/other"])
    assert.equal((await call(`files/mkdir?parents=1&arg=${dir}`)).status, 200);
  for (const file of ["/team/a/f", "/other/f"])
    assert.equal((await call(`files/cp?arg=/ipfs/${content}&arg=${file}`)).status, 200);
});
after(() => host?.stop());

const authorized = (secret: string | undefined) => (secret === undefined ? {} : { Authorization: `Bearer ${secret}` });

/** Makes a call, from another machine if it has a secret, and otherwise from this one. */
function call(path: string, secret?: string, more: Record<string, string> = authorized(secret), body?: string) {
  const remote = { remote_address: "Authorization" in more ? "192.0.2.7" : "127.0.0.1" };
  const headers = { Host: "localhost", ...more };
  return host.inject({
    path: `/api/v0/${path}`,
    method: "POST",
    headers,
    ...(body === undefined ? {} : { body }),
    ...remote,
  });
}

function upload(path: string, text: string, secret?: string) {
  const body = `--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\nContent-Type: application/octet-stream\r\n\r\n${text}\r\n--x--\r\n`;
  return call(path, secret, { ...authorized(secret), "Content-Type": "multipart/form-data; boundary=x" }, body);
}

async function secretOf(scopes: readonly string[], more: Partial<NewToken> = {}): Promise<string> {
  return (await tokens.create({ name: `t${++made}`, scopes, ...more })).secret;
}

async function statuses(secret: string, paths: readonly string[]): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for (const path of paths) found[path] = (await call(path, secret)).status;
  return found;
}

describe("a token for commands", () => {
  test("a token names existing groups and commands; otherwise it is not created, and the refusal lists them", async () => {
    const refused = (scope: string) => assert.rejects(secretOf([scope]), { code: "TOKEN_INVALID" });
    for (const scope of ["rpc:*", "rpc:pin", "rpc:pin/remote/ls:read", "rpc:version"]) await secretOf([scope]);
    for (const scope of ["rpc:pni", "rpc:pni:read", "rpc:pin/list", "rpc:id/x", "rpc:__proto__"]) await refused(scope);
    await assert.rejects(
      secretOf(["metrics", "rpc:pni:read"]),
      /"rpc:pni:read": it must be rpc:\* or rpc: with one of add, .*, pin, /,
    );
    await assert.rejects(secretOf(["rpc:pin/list"]), /with one of pin\/add, pin\/ls, /);
  });

  test("a token opens its groups, and only reads or writes if it says so", async () => {
    const secret = await secretOf(["rpc:pin:read", "rpc:id", "rpc:key/list"]);
    const responses = await statuses(secret, [
      "pin/ls",
      "id",
      "key/list",
      "version",
      `pin/add?arg=${content}`,
      "key/gen?arg=x",
      "repo/stat",
    ]);
    assert.deepEqual(Object.values(responses), [200, 200, 200, 200, 403, 403, 403]);
    const refused = await call("key/gen?arg=x", secret);
    assert.match(refused.body, /^The token t\d+ lacks the scope rpc:key\/gen:write\n$/);
    assert.match(String(refused.headers["www-authenticate"]), /error="insufficient_scope", scope="rpc:key\/gen:write"/);
    assert.equal(
      (await call("key/export?arg=self", await secretOf(["rpc:*:read"]))).status,
      403,
      "a secret is handed out",
    );
  });

  test("a token opens nothing here if it is for something else", async () => {
    const secret = await secretOf(["admin", "metrics", "app:*"]);
    assert.deepEqual(
      Object.values(await statuses(secret, ["version", "id", "no/such", "files/ls"])),
      [403, 403, 403, 403],
    );
  });

  test("a token is accepted as a password, as clients of Kubo send it, and older forms still work", async () => {
    const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString("base64")}` });
    const secret = await secretOf(["rpc:id"]);
    assert.equal((await call("id", undefined, basic(`user:${secret}`))).status, 200);
    assert.equal((await call("id", undefined, basic(`${secret}:user`))).status, 403);
    assert.equal((await call("repo/stat", undefined, { Authorization: "Bearer old" })).status, 200);
    assert.equal((await call("id", undefined, basic("user:narrow"))).status, 200);
    assert.equal((await call("repo/stat", undefined, { Authorization: "Bearer narrow" })).status, 403);
  });

  test("a token that is forged, revoked, expired or over its rate is refused, even from this machine", async () => {
    const secret = await secretOf(["rpc:*"], { rate: "1/h" });
    const here = (text: string) =>
      host.fetch("/api/v0/id", { method: "POST", headers: { Authorization: `Bearer ${text}` } });
    assert.equal((await here(secret)).status, 200);
    const fast = await here(secret);
    assert.equal(fast.status, 429);
    assert.ok(Number(fast.headers.get("retry-after")) > 3000);
    assert.equal((await here(`${secret.slice(0, -1)}_`)).status, 401);
    await tokens.revoke(secret);
    const gone = await here(secret);
    assert.deepEqual([gone.status, gone.headers.get("www-authenticate")?.includes("invalid_token")], [401, true]);
  });
});

describe("a token for a directory", () => {
  const outside = [
    "files/ls",
    "files/ls?arg=/",
    "files/ls?arg=/team",
    "files/ls?arg=/team/ab",
    "files/ls?arg=/team/a/..",
    "files/ls?arg=/team/a/%2e%2e/ab",
    "files/ls?arg=/team/a/%2E%2E%2Fab",
    "files/ls?arg=%2Fteam%2Fa%2F..%2Fab",
    "files/ls?arg=/team/a/../a",
    "files/ls?arg=/../team/a/./",
    "files/ls?arg=/other&arg=/team/a",
    "files/ls?arg=team/a",
    "files/read?arg=/other/f",
    "files/read?arg=/team/a/../../other/f",
    "files/rm?arg=/other/f",
    "files/rm?arg=/team/a&force=true",
    "files/rm?arg=/team/a/f&arg=/other/f",
    "files/rm?recursive=true&arg=/team/a/../ab",
    "files/mkdir?arg=/team/c",
    "files/cp?arg=/other/f&arg=/team/a/g",
    "files/cp?arg=/team/a/f&arg=/other/g",
    "files/cp?arg=/team/a/f&arg=/team/a/../g",
    "files/cp?arg=/ipns/x&arg=/team/a/g",
    "files/cp?arg=/ipfs/../other/f&arg=/team/a/g",
    "files/mv?arg=/other/f&arg=/team/a/g",
    "files/mv?arg=/team/a/f&arg=/other/g",
    "files/mv?arg=/team/a&arg=/team/a/b",
    "files/flush",
    "files/flush?arg=team/a/../../other",
    "files/chcid",
    "files/chcid?arg=/team/a/../../other",
    "files/chcid?arg=/team/a",
    "files/ls/team",
  ];

  test("a token for a directory opens nothing outside, however the path is written", async () => {
    const secret = await secretOf(["mfs:/team/a"]);
    const paths = [
      ...outside,
      `files/stat?arg=/ipfs/${content}`,
      `cat?arg=/ipfs/${content}`,
      `files/stat?arg=${content}`,
    ];
    for (const [path, status] of Object.entries(await statuses(secret, paths))) assert.equal(status, 403, path);
    for (const other of ["id", "pin/ls", "config/show", "repo/gc", "files"])
      assert.equal((await call(other, secret)).status, 403, other);
    assert.equal((await upload("files/write?create=true&arg=/other/w", "x", secret)).status, 403);
    assert.equal((await upload("add?to-files=/team/a/", "x", secret)).status, 403);
    assert.equal((await call("files/read?arg=/other/f")).body, "hello", "all is as it was");
    assert.equal((await call("files/ls?arg=/team")).json<{ Entries: unknown[] }>().Entries.length, 2);
  });

  test("a token for a directory opens what lies in it, including content that is copied there", async () => {
    const secret = await secretOf(["mfs:/team/a"]);
    for (const path of [
      "files/ls?arg=/team/a",
      "files/ls?arg=//team//a//",
      "files/stat?arg=/team/a",
      "files/read?arg=/team/a/f",
      "files/mkdir?parents=true&arg=/team/a/x/y",
      `files/cp?arg=/ipfs/${content}&arg=/team/a/x/`,
      "files/cp?arg=/team/a/f&arg=/team/a/g",
      "files/mv?arg=/team/a/x/y&arg=/team/a/z",
      "files/flush?arg=/team/a",
      "files/chcid?arg=/team/a/x&cid-version=1",
      "files/rm?recursive=true&arg=/team/a/x",
      "version",
    ]) {
      const { status, body } = await call(path, secret);
      assert.equal(status, 200, `${path}: ${body}`);
    }
    assert.equal((await upload("files/write?create=true&arg=/team/a/w", "x", secret)).status, 200);
  });

  test("a read-only token for a directory changes nothing", async () => {
    const secret = await secretOf(["mfs:read:/team/a"]);
    assert.equal((await call("files/read?arg=/team/a/f", secret)).body, "hello");
    for (const path of [
      "files/mkdir?arg=/team/a/n",
      "files/rm?arg=/team/a/f",
      `files/cp?arg=/ipfs/${content}&arg=/team/a/n`,
    ])
      assert.equal((await call(path, secret)).status, 403, path);
  });
});

test("a token for add writes to the MFS with to-files only if it also opens that path", async () => {
  for (const [scopes, path, status] of [
    [["rpc:add"], "/other/x", 403],
    [["rpc:add", "mfs:read:/team"], "/team/x", 403],
    [["rpc:add", "mfs:/team"], "/other/x", 403],
    [["rpc:add", "mfs:/team"], "/team/x", 200],
    [["rpc:add", "rpc:files"], "/other/x", 200],
    [["rpc:*"], "/other/y", 200],
  ] as const) {
    const response = await upload(`add?to-files=${path}`, "hello", await secretOf(scopes));
    assert.equal(response.status, status, `${scopes} ${path}: ${response.body}`);
  }
  assert.equal((await upload("add", "hello", await secretOf(["rpc:add"]))).status, 200);
});

test("each command declares whether it reads or writes, and only MFS commands have MFS paths", () => {
  const paths: string[] = [];
  const walk = ({ path, entry, children }: CommandNode): void => {
    if (isCommand(entry)) {
      assert.ok(["read", "write"].includes(entry.effect), path);
      assert.ok(entry.readOnly !== true || entry.effect === "read", `${path} is served on the read-only port`);
      const uses = entry.arguments.flatMap(({ mfs }) => mfs ?? []);
      assert.equal(uses.length > 0, path.startsWith("files/"), path);
      const others = entry.arguments.filter(({ mfs }) => mfs === undefined).map(({ name }) => name);
      if (uses.length > 0) assert.deepEqual(others, path === "files/chmod" ? ["mode"] : [], `${path} has paths alone`);
      const isWriting = uses.some((use) => use !== "look" && use !== "copy");
      if (uses.length > 0) assert.equal(isWriting, entry.effect === "write", path);
      paths.push(path);
    }
    for (const child of children.values()) walk(child);
  };
  walk(table.root);
  const listed = new Set(table.commands().map(([path]) => path));
  assert.equal(paths.filter((path) => listed.has(path)).length, 139);
});
