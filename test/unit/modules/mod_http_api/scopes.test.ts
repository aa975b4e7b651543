import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { MfsUse } from "#modules/mod_http_api/rpc/command.ts";
import { type MfsNeed, type RpcNeed, scopes } from "#modules/mod_http_api/scopes.ts";
import { kindsOf, opens as opensWith } from "#test/support/token_scopes.ts";

const kinds = kindsOf(...scopes);
const opens = (scope: string, need: RpcNeed | MfsNeed) => {
  assert.deepEqual(kinds.undeclared([scope]), [], "it is a scope");
  return opensWith(kinds, scope, need);
};
const rpc = (command: string, effect: "read" | "write" = "read"): RpcNeed => ({ kind: "rpc", command, effect });
const mfs = (path: string, use: MfsUse = "change"): MfsNeed => ({ kind: "mfs", path, use });

describe("a scope of the RPC", () => {
  test("a scope opens the commands of its group by whole components, and only those of one effect if it names one", () => {
    assert.ok(opens("rpc:pin", rpc("pin/add", "write")) && opens("rpc:pin", rpc("pin/remote/ls")));
    assert.ok(opens("rpc:pin:read", rpc("pin/ls")) && !opens("rpc:pin:read", rpc("pin/add", "write")));
    assert.ok(opens("rpc:pin:write", rpc("pin/add", "write")) && !opens("rpc:pin:write", rpc("pin/ls")));
    assert.ok(!opens("rpc:pin", rpc("ping")) && !opens("rpc:pin/ls", rpc("pin/lsx")) && !opens("rpc:pin", rpc("add")));
    assert.ok(opens("rpc:*", rpc("shutdown", "write")) && !opens("rpc:*:read", rpc("shutdown", "write")));
  });

  test("a scope opens nothing of another kind, and satisfies the need for any command or path of its own kind", () => {
    assert.ok(!opens("rpc:*", mfs("/a/b")) && !opens("mfs:/", rpc("files/ls")));
    assert.ok(opens("rpc:id:read", { kind: "rpc" }) && !opens("rpc:id:read", { kind: "mfs" }));
    assert.ok(opens("mfs:/a", { kind: "mfs" }) && !opens("mfs:/a", { kind: "rpc" }));
  });

  test("a scope is refused if it climbs, names content or names no command", () => {
    const wrong = [
      "rpc",
      "rpc:",
      "rpc:pin:delete",
      "rpc:pin/",
      "mfs:team",
      "mfs:/a/../b",
      "mfs:/ipfs/x",
      "mfs:write:/a",
    ];
    assert.deepEqual(kinds.undeclared(wrong), wrong);
  });

  test("a scope for a directory opens what lies below it, and nothing next to it", () => {
    for (const inside of ["/team/a/x", "/team/a/x/y/", "//team///a//x", "/team/a/..x", "/team/a/%2e%2e"])
      assert.ok(opens("mfs:/team/a", mfs(inside)), inside);
    for (const outside of [
      ...["/", "", "team/a/x", "/team", "/team/ab", "/team/A/x", "/team/b/x", "/ipfs/x/team/a", "/team/a/../b"],
      ...["/team/a/x/../../b", "/team/a/..", "/team/a/../a/x", "/./team/a/x", "/team/a/./x", "/../team/a/x"],
      ...["\\team\\a\\x", "/team/a\0/x", "/team\u2215a/x", "/team/a", "/team/a/"],
    ])
      assert.ok(!opens("mfs:/team/a", mfs(outside)), outside);
  });

  test("a scope for a directory opens the directory itself for looking, making and putting into", () => {
    const scope = "mfs:/team/a";
    assert.ok(opens(scope, mfs("/team/a", "look")) && opens(scope, mfs("/team/a", "make")));
    assert.ok(opens(scope, mfs("/team/a/", "into")) && !opens(scope, mfs("/team/a", "into")));
    assert.ok(!opens(scope, mfs("/team", "look")) && !opens(scope, mfs("/team/", "into")));
    assert.ok(opens(scope, mfs("/ipfs/bafy/x", "copy")) && opens(scope, mfs("/team/a", "copy")));
    assert.ok(!opens(scope, mfs("/ipfs", "copy")) && !opens(scope, mfs("/ipns/x", "copy")));
    assert.ok(!opens(scope, mfs("/ipfs/bafy", "look")) && !opens(scope, mfs("/ipfs/../team/b", "copy")));
    assert.ok(
      opens("mfs:read:/team/a", mfs("/team/a/x", "look")) && opens("mfs:read:/team/a", mfs("/team/a/x", "copy")),
    );
    for (const use of ["make", "change", "into"] as const) assert.ok(!opens("mfs:read:/", mfs("/x/", use)), use);
  });

  test("a refusal names the path that the token does not allow, or the scope that the client lacks", () => {
    assert.equal(
      kinds.refusalFor(mfs("/b/x"), { name: "ci" }),
      'The token ci does not allow the path "/b/x" (paths with . or .. are always refused)',
    );
    assert.equal(
      kinds.refusalFor(rpc("pin/add", "write"), { name: "ci" }),
      "The token ci lacks the scope rpc:pin/add:write",
    );
    assert.deepEqual([kinds.scopeFor(mfs("/b/x")), kinds.scopeFor({ kind: "rpc" })], ["mfs:/DIR", "rpc:*"]);
  });
});
