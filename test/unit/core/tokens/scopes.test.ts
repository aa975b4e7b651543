import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { TokenNeed, TokenScopeKind } from "#core/types.ts";
import { account, accountFor } from "#core/util/usage.ts";
import { declaredBy, kindsOf, opens } from "#test/support/token_scopes.ts";

const shop = { kind: "shop", help: "the whole shop", accesses: { read: "the orders", sell: "sales" } };
const rooms: TokenScopeKind<TokenNeed & { readonly path: string }, string> = {
  kind: "room",
  forms: [{ form: "room:/PATH", help: "the rooms below a path" }],
  parse: (text) => /^room:(\/.*)$/.exec(text)?.[1],
  covers: (path, need) => need.path.startsWith(path),
  describe: ({ path }) => `room:${path}`,
  refusal: ({ path }, { name }) => `${name} may not enter ${path}`,
  check: (path) => (path === "/nowhere" ? "room: with a path that exists" : undefined),
};

describe("a token scope", () => {
  test("for apps grants access to the app that it names, or to all apps", () => {
    const kinds = kindsOf();
    assert.ok(
      opens(kinds, "app:chat", { kind: "app", name: "chat" }) && opens(kinds, "app:*", { kind: "app", name: "x" }),
    );
    assert.ok(!opens(kinds, "app:chat", { kind: "app", name: "chats" }));
    assert.ok(!opens(kinds, "app:chat", { kind: "app", name: "*" }));
  });

  test("grants nothing of another kind, and * grants everything", () => {
    const kinds = kindsOf(shop, rooms);
    const needs: readonly (readonly [string, TokenNeed])[] = [
      ["app:*", { kind: "app", name: "chat" }],
      ["shop", { kind: "shop", access: "read" }],
      ["room:/", { kind: "room", path: "/a" }],
      ["other:*", { kind: "other" }],
    ];
    for (const [scope] of needs) {
      for (const [own, need] of needs)
        assert.equal(opens(kinds, scope, need), scope === own && own !== "other:*", `${scope} for ${own}`);
    }
    for (const [, need] of needs) assert.ok(opens(kinds, "*", need));
  });

  test("with fixed names grants the named access, and without a name everything of its kind", () => {
    const kinds = kindsOf(shop);
    const may = (scope: string) =>
      ["read", "sell", "close", undefined].filter((access) => opens(kinds, scope, { kind: "shop", access }));
    assert.deepEqual(may("shop:read"), ["read"]);
    assert.deepEqual(may("shop:sell"), ["sell"]);
    assert.deepEqual(may("shop"), ["read", "sell", "close", undefined]);
    for (const none of ["shop:", "shop:close", "shop:read:sell", "shop:constructor", "SHOP"])
      assert.deepEqual(may(none), [], none);
    assert.equal(kinds.scopeFor({ kind: "shop", access: "read" }), "shop:read");
    assert.equal(kinds.scopeFor({ kind: "shop", access: "close" }), "shop");
  });

  test("with functions is parsed, compared, described and refused by the module that declares it", () => {
    const kinds = kindsOf(rooms);
    assert.ok(
      opens(kinds, "room:/a", { kind: "room", path: "/a/b" }) && !opens(kinds, "room:/a", { kind: "room", path: "/b" }),
    );
    assert.equal(kinds.scopeFor({ kind: "room", path: "/b" }), "room:/b");
    assert.equal(kinds.refusalFor({ kind: "room", path: "/b" }, { name: "ann" }), "ann may not enter /b");
  });

  test("grants nothing while its kind is not declared, and grants access again when it is", () => {
    const kinds = kindsOf();
    const item = declaredBy("mod", shop);
    const need = { kind: "shop", access: "read" };
    assert.deepEqual(
      [opens(kinds, "shop:read", need), kinds.undeclared(["shop:read", "app:a"])],
      [false, ["shop:read"]],
    );
    kinds.add(item);
    assert.deepEqual([opens(kinds, "shop:read", need), kinds.undeclared(["shop:read"])], [true, []]);
    kinds.remove(item);
    assert.equal(opens(kinds, "shop:read", need), false);
    assert.equal(kinds.refusalFor(need, { name: "ann" }), "The token ann lacks the scope shop");
  });

  test("can be declared by one module only, however many instances of it exist", () => {
    const kinds = kindsOf(shop);
    const old = kinds.version;
    const again = declaredBy("example", { kind: "shop", help: "all", accesses: { close: "closing time" } });
    assert.throws(() => kinds.add(declaredBy("thief", shop)), {
      code: "TOKEN_SCOPE_TAKEN",
      message: /scopes shop is declared by the module example already/,
    });
    assert.throws(() => kinds.add(declaredBy("thief", { kind: "app", help: "all" })), {
      message: /by the host itself/,
    });
    assert.equal(kinds.version, old, "a refused declaration changes nothing");
    // The instance of a reload is in force before the previous one is unloaded.
    kinds.add(again);
    assert.deepEqual(kinds.undeclared(["shop:close", "shop:read"]), ["shop:read"]);
    assert.throws(() => kinds.add({ ...again }), { code: "TOKEN_SCOPE_TAKEN" }, "one instance declares it once");
    kinds.remove(again);
    assert.deepEqual(kinds.undeclared(["shop:close", "shop:read"]), ["shop:close"]);
  });

  test("that fails in the code of its module grants nothing, and counts as a failure of that module", () => {
    const kinds = kindsOf();
    const failing = () => {
      throw new Error("broken");
    };
    const usage = accountFor("mod");
    const item = declaredBy("mod", { ...rooms, covers: failing, describe: failing, refusal: failing });
    account(item.owner, usage);
    kinds.add(item);
    assert.equal(opens(kinds, "room:/", { kind: "room", path: "/a" }), false);
    assert.equal(kinds.refusalFor({ kind: "room", path: "/a" }, { name: "ann" }), "The token ann lacks the scope room");
    assert.equal(usage.faults, 3);
    const late = declaredBy("late", { ...rooms, kind: "late", parse: () => "/", covers: (async () => true) as never });
    kinds.add(late);
    assert.equal(opens(kinds, "late:/", { kind: "late", path: "/a" }), false, "a promise grants nothing");
  });

  test("that a module describes with line breaks or quotes does not reach the headers of a refusal", () => {
    const kinds = kindsOf({ ...rooms, describe: () => 'room:/"\r\nX-Evil: 1' });
    assert.equal(kinds.scopeFor({ kind: "room", path: "/a" }), "room");
  });

  test("is accepted for a new token only if it has a declared form and names what exists", () => {
    const kinds = kindsOf(shop, rooms);
    kinds.assertDeclared(["*", "app:chat", "shop", "shop:read", "room:/a"]);
    const refused = (scope: string, allowed: string) =>
      assert.throws(() => kinds.assertDeclared(["*", scope]), {
        code: "TOKEN_INVALID",
        message: `The scopes of a token cannot be ${JSON.stringify(scope)}: it must be ${allowed}`,
      });
    refused("shop:close", "one of shop, shop:read, shop:sell");
    refused("room:/nowhere", "room: with a path that exists");
    refused("ship:read", "one of app:NAME, shop, shop:read, shop:sell, room:/PATH, *");
  });

  for (const [fault, item] of [
    ["a kind that is not a word", { kind: "Shop:", help: "all" }],
    ["no help", { kind: "shop" }],
    ["an access without help", { kind: "shop", help: "all", accesses: { read: 1 } }],
    ["an access that is not a word", { kind: "shop", help: "all", accesses: { "a b": "c" } }],
    ["no covers", { ...rooms, covers: undefined }],
    ["no forms", { ...rooms, forms: undefined }],
    ["a form without help", { ...rooms, forms: [{ form: "room" }] }],
  ] as const) {
    test(`cannot be declared with ${fault}`, () => {
      assert.throws(() => kindsOf(item as never), TypeError);
    });
  }
});
