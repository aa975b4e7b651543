/** Decisions about uses of permissions, their counts, and the list that is made of them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Authority, PermissionLedger, permissionStates } from "#core/permissions/index.ts";
import type { ModulePermissions } from "#core/types.ts";

const folders = { folder: "/srv/modules/shop", dataFolder: "/srv/data/module_data/shop" };

function made(granted: ModulePermissions | undefined, isAudited = false) {
  const warned: string[] = [];
  const ledger = new PermissionLedger(() => 1000);
  const warn = (text: string) => warned.push(text);
  const authority = new Authority({ module: "shop", folders, granted, isAudited, ledger, warn });
  const states = (declared: ModulePermissions = {}) =>
    permissionStates({
      module: "shop",
      folders,
      declared,
      granted,
      run: "sandboxed",
      isAudited,
      uses: ledger.of("shop"),
    });
  return { authority, ledger, states, warned };
}

const refused = { code: "PERMISSION_DENIED" };

describe("a use of a permission", () => {
  test("passes if it is granted, and is refused with the line that would grant it", () => {
    const { authority } = made({ call: { node: ["cat"], catalog: true } });
    authority.use({ kind: "call", item: "node.cat" });
    authority.use({ kind: "call", item: "catalog.prices.list" });
    assert.throws(() => authority.use({ kind: "call", item: "node.pin.ls" }), {
      ...refused,
      message:
        'The module shop may not call node.pin.ls: to allow it, add modules: { shop: { grant: { call: { node: ["pin.ls"] } } } } to the configuration',
    });
    // A name that begins like a granted one is another function.
    for (const item of ["node.cats", "node.cat.x", "nodes.cat"]) {
      assert.throws(() => authority.use({ kind: "call", item }), refused, item);
    }
  });

  test("has a text that controls no terminal, whatever the module calls it", () => {
    const { authority, states, warned } = made({});
    const item = "/x\u001b]0;title\u0007\u009b2J\u202e";
    for (const kind of ["run", "listen", "call"] as const) {
      assert.throws(
        () => authority.use({ kind, item }),
        ({ message }: Error) => !/[\p{Cc}\u202e]/u.test(message),
      );
    }
    const texts = [...warned, ...states().flatMap(({ text, grant }) => [text, grant ?? ""])];
    assert.equal(texts.length, 9);
    for (const text of texts) assert.doesNotMatch(text, /[\p{Cc}\u202e]/u);
  });

  test("passes without any grant if nothing restricts the module, and is counted", () => {
    const { authority, states } = made(undefined);
    authority.use({ kind: "call", item: "node.cat" });
    assert.deepEqual(states(), [
      {
        kind: "call",
        what: "node.cat",
        text: "may call node.cat",
        is_declared: false,
        is_granted: true,
        is_enforced: false,
        used: 1,
        denied: 0,
        last: new Date(1000).toISOString(),
      },
    ]);
  });

  test("passes with audit, and is listed and logged once as refused", () => {
    const { authority, states, warned } = made({}, true);
    authority.use({ kind: "call", item: "node.cat" });
    authority.use({ kind: "call", item: "node.cat" });
    assert.deepEqual(
      states().map(({ what, denied, is_granted }) => [what, denied, is_granted]),
      [["node.cat", 2, false]],
    );
    assert.equal(warned.length, 1);
    assert.match(
      warned[0] ?? "",
      /^Not refused because of audit: it may not call node\.cat; to allow it, add modules: \{ shop/,
    );
  });

  test("is refused for a dependency with a grant of all its functions that the module declares", () => {
    const { authority, states } = made({ call: { catalog: true } });
    authority.depend("catalog", {});
    assert.throws(() => authority.depend("node", { call: { node: ["cat", "pin.ls"], shop: ["x"] } }), {
      ...refused,
      message:
        /may not call node\.cat: .* add modules: \{ shop: \{ grant: \{ call: \{ node: \["cat", "pin\.ls"\] \} \} \} \}/,
    });
    for (const declared of [{}, { call: { node: true } }] as const) {
      assert.throws(
        () => authority.depend("node", declared),
        /may not call every function of node: .*\{ node: true \}/,
      );
    }
    assert.deepEqual(
      states().map(({ what, used, denied }) => [what, used, denied]),
      [
        ["catalog.*", 1, 0],
        ["node.cat", 0, 1],
        ["node.*", 0, 2],
      ],
    );
  });

  test("names the host and the port of a connection, with brackets around an address of IPv6", () => {
    const { authority } = made({ connect: ["*.example.org:443"] });
    authority.connect({ host: "api.example.org", port: 443 });
    assert.throws(() => authority.connect({ host: "evil.test", port: 443 }), /may not connect to evil\.test:443/);
    assert.throws(() => authority.connect({ host: "::1", port: 80 }), /connect: \["\[::1\]:80"\]/);
  });
});

test("the broker of the network can check what is granted, and each connection is counted", () => {
  const { authority, states } = made({ connect: ["api.example.org:443"] });
  assert.equal(authority.network.allows("api.example.org", 443), true);
  assert.equal(authority.network.allows("::1", 80), false);
  assert.match(authority.network.refusal("::1", 80).message, /may not connect to \[::1\]:80/);
  assert.deepEqual(
    states().map(({ what, used, denied }) => [what, used, denied]),
    [
      ["api.example.org:443", 1, 0],
      ["[::1]:80", 0, 1],
    ],
  );
  assert.equal(made({}, true).authority.network.allows("evil.test", 1), true);
});

describe("the list of permissions", () => {
  test("counts a use for the granted item that covers it", () => {
    const { authority, states } = made({ connect: ["*.example.org:443"], read: ["/srv/pictures"] });
    authority.connect({ host: "api.example.org", port: 443 });
    authority.connect({ host: "www.example.org", port: 443 });
    assert.throws(() => authority.connect({ host: "evil.test", port: 443 }), refused);
    const shown = states({ connect: ["api.example.org:443"], read: ["./templates", "/srv/pictures/new", "/etc"] });
    assert.deepEqual(
      shown.map(({ what, is_declared, is_granted, used, denied }) => [what, is_declared, is_granted, used, denied]),
      [
        // A module reads its own folder in any case. The kernel enforces files, and counts nothing.
        ["./templates", true, true, undefined, undefined],
        ["/srv/pictures/new", true, true, undefined, undefined],
        ["/etc", true, false, undefined, undefined],
        ["/srv/pictures", false, true, undefined, undefined],
        ["api.example.org:443", true, true, 0, 0],
        ["*.example.org:443", false, true, 2, 0],
        ["evil.test:443", false, false, 0, 1],
      ],
    );
    assert.deepEqual(
      shown.flatMap(({ grant }) => grant ?? []),
      [
        'modules: { shop: { grant: { read: ["/etc"] } } }',
        'modules: { shop: { grant: { connect: ["evil.test:443"] } } }',
      ],
    );
  });

  test("knows that a writable folder can be read, and that data is the module's own folder", () => {
    const { states } = made({ write: ["data", "./cache"] });
    const shown = states({ read: ["./cache/x"], write: ["data", "/srv/data/module_data/shop/a", "/srv/data"] });
    assert.deepEqual(
      shown.map(({ what, is_granted }) => [what, is_granted]),
      [
        ["./cache/x", true],
        ["data", true],
        ["/srv/data/module_data/shop/a", true],
        ["/srv/data", false],
        ["./cache", true],
      ],
    );
  });
});

test("a module cannot fill the memory with permissions that it tries", () => {
  const { authority, ledger } = made({});
  for (let at = 0; at < 1000; at += 1) {
    const item = `node.${"x".repeat(10_000)}${at}`;
    assert.throws(() => authority.use({ kind: "call", item: `m${at}.${item}` }), refused);
  }
  const counted = ledger.of("shop");
  assert.ok(counted.length <= 256, String(counted.length));
  assert.ok(counted.every(({ item }) => item.length <= 256));
});
