import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { covers, parseScope } from "#core/tokens/scopes.ts";
import type { MfsUse, TokenNeed } from "#core/types.ts";

const opens = (scope: string, need: TokenNeed) => covers(parseScope(scope) ?? assert.fail(scope), need);
const rpc = (command: string, effect: "read" | "write" = "read"): TokenNeed => ({ kind: "rpc", command, effect });
const mfs = (path: string, use: MfsUse = "change"): TokenNeed => ({ kind: "mfs", path, use });

describe("a scope", () => {
  test("opens the commands of its group by whole components, and of one effect if it says so", () => {
    assert.ok(opens("rpc:pin", rpc("pin/add", "write")) && opens("rpc:pin", rpc("pin/remote/ls")));
    assert.ok(opens("rpc:pin:read", rpc("pin/ls")) && !opens("rpc:pin:read", rpc("pin/add", "write")));
    assert.ok(opens("rpc:pin:write", rpc("pin/add", "write")) && !opens("rpc:pin:write", rpc("pin/ls")));
    assert.ok(!opens("rpc:pin", rpc("ping")) && !opens("rpc:pin/ls", rpc("pin/lsx")) && !opens("rpc:pin", rpc("add")));
    assert.ok(opens("rpc:*", rpc("shutdown", "write")) && !opens("rpc:*:read", rpc("shutdown", "write")));
  });

  test("opens nothing of another kind", () => {
    const needs: readonly (readonly [string, TokenNeed])[] = [
      ["rpc:*", rpc("id")],
      ["mfs:/a", mfs("/a/b")],
      ["app:*", { kind: "app", name: "chat" }],
      ["admin", { kind: "admin", access: "admin" }],
      ["metrics", { kind: "metrics" }],
      ["pinning:anna", { kind: "pinning" }],
    ];
    for (const [scope] of needs) {
      for (const [own, need] of needs) assert.equal(opens(scope, need), scope === own, `${scope} for ${own}`);
      assert.ok(opens("*", needs.find(([own]) => own === scope)?.[1] ?? assert.fail()));
    }
  });

  test("of the Admin API and of apps opens what it names", () => {
    assert.ok(opens("admin", { kind: "admin", access: "read" }));
    assert.ok(!opens("admin:read", { kind: "admin", access: "admin" }));
    assert.ok(!opens("app:chat", { kind: "app", name: "chats" }) && !opens("app:chat", { kind: "app", name: "*" }));
  });

  test("of a directory opens what lies below it, and nothing beside it", () => {
    for (const inside of ["/team/a/x", "/team/a/x/y/", "//team///a//x", "/team/a/..x", "/team/a/%2e%2e"])
      assert.ok(opens("mfs:/team/a", mfs(inside)), inside);
    for (const outside of [
      ...["/", "", "team/a/x", "/team", "/team/ab", "/team/A/x", "/team/b/x", "/ipfs/x/team/a", "/team/a/../b"],
      ...["/team/a/x/../../b", "/team/a/..", "/team/a/../a/x", "/./team/a/x", "/team/a/./x", "/../team/a/x"],
      ...["\\team\\a\\x", "/team/a\0/x", "/team\u2215a/x", "/team/a", "/team/a/"],
    ])
      assert.ok(!opens("mfs:/team/a", mfs(outside)), outside);
  });

  test("of a directory opens the directory itself for looking, making, and putting into", () => {
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
});
