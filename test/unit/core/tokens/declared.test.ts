/** Token scopes that modules declare, on a running host. */
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import type { ServerTokens } from "#core/types.ts";
import { pluginHost, stateOf, write } from "../module/support.ts";

const scopes = '{ kind: "shop", help: "the whole shop", accesses: { read: "the orders" } }';
const shop = `export default (module) => {
  module.depends("http");
  module.provides("token-scope", ${scopes});
  const may = (request, access) => {
    const found = module.tokens.authorize(request, { kind: "shop", access });
    return "status" in found ? found.status : "welcome, " + found.name;
  };
  module.provides("http", {
    route: { GET: ({ request }) => may(request, "read"), POST: ({ request }) => may(request, "write") },
  });
};`;

/** The source of an app whose callers need a token that may read orders. */
const counter = (options: string, access = "read") => `${options}
export default (module) => {
  module.depends("http");
  module.provides("http", {
    auth: { need: { kind: "shop", access: "${access}" } },
    route: { GET: ({ request: { token } }) => ["read", "sell"].filter((access) => token.allows({ kind: "shop", access })).join() },
  });
};`;

async function served(t: TestContext, files: Readonly<Record<string, string>>) {
  let tokens: ServerTokens | undefined;
  const running = await pluginHost(t, {
    ...files,
    "mod_make.js": "export default (module) => ({ tokens: module.server.tokens });",
  });
  tokens = running.host.exports<{ tokens: ServerTokens }>("make").tokens;
  const secretOf = async (...wanted: string[]) =>
    (await tokens.create({ name: wanted.join("_").replaceAll(":", "-").replaceAll("*", "all"), scopes: wanted }))
      .secret;
  const ask = async (path: string, secret: string, method = "GET") => {
    const { status, body, headers } = await running.inject({
      path,
      method,
      headers: { Authorization: `Bearer ${secret}` },
    });
    return { status, body, challenge: headers["www-authenticate"] };
  };
  return { ...running, tokens, secretOf, ask };
}

describe("a token scope of a module", () => {
  test("grants the access that the module requires, and is listed with its module", async (t) => {
    const { tokens, secretOf, ask } = await served(t, { "mod_shop.js": shop });
    assert.deepEqual(tokens.scopes(), [
      { form: "app:NAME", help: "apps that require tokens by this name; app:* is for all of them", module: undefined },
      { form: "shop", help: "the whole shop", module: "shop" },
      { form: "shop:read", help: "the orders", module: "shop" },
      { form: "*", help: "everything", module: undefined },
    ]);
    const reader = await secretOf("shop:read");
    const owner = await secretOf("shop");
    const other = await secretOf("app:chat");
    assert.equal((await ask("/shop", reader)).body, "welcome, shop-read");
    assert.deepEqual(
      [(await ask("/shop", reader, "POST")).status, (await ask("/shop", owner, "POST")).status],
      [403, 200],
    );
    assert.equal((await ask("/shop", other)).status, 403);
    await assert.rejects(secretOf("shop:sell"), { code: "TOKEN_INVALID", message: /one of shop, shop:read$/ });
    await assert.rejects(secretOf("ship"), { code: "TOKEN_INVALID", message: /one of app:NAME, shop, shop:read, \*$/ });
  });

  test("grants nothing once the module is unloaded, is reported then, and grants access again after a load", async (t) => {
    const { host, tokens, secretOf, ask, load, unload } = await served(t, {
      "mod_shop.js": shop,
      "mod_counter.js": counter(""),
    });
    const secret = await secretOf("shop:read", "app:chat");
    assert.deepEqual([(await ask("/counter", secret)).status, host.status().warnings], [200, []]);
    await unload("shop");
    const refused = await ask("/counter", secret);
    assert.deepEqual(
      [refused.status, refused.challenge],
      [403, 'Bearer realm="modhost", error="insufficient_scope", scope="shop"'],
    );
    assert.deepEqual(tokens.list()[0]?.undeclared_scopes, ["shop:read"]);
    assert.deepEqual(host.status().warnings, [
      "Scopes of the token shop-read_app-chat grant nothing, because no loaded module declares them: shop:read",
    ]);
    assert.equal((await ask("/counter", await secretOf("*"))).status, 200, "the scope of everything is the host's own");
    await load("shop");
    assert.deepEqual([(await ask("/counter", secret)).status, host.status().warnings], [200, []]);
    assert.equal(tokens.list()[0]?.undeclared_scopes, undefined);
  });

  test("is valid at every moment of a reload of the module", async (t) => {
    const steps = `${shop.replace(
      "export default (module) => {",
      `export default (module) => {
      const note = (step) => () => module.announce_event("step", { step, scopes: module.server.tokens.scopes().length });
      module.save = note("save");
      module.restore = note("restore");
      module.unload = note("unload");
      module.hook("module-reloaded", note("reloaded"));`,
    )}`;
    const watch =
      "export default (module) => { const seen = []; module.hook('step', (step) => void seen.push(step)); return seen; };";
    const { host, secretOf, ask, reload } = await served(t, {
      "mod_shop.js": steps,
      "mod_counter.js": counter(""),
      "mod_watch.js": watch,
    });
    const secret = await secretOf("shop:read");
    await reload("shop");
    const seen = host.exports<{ step: string; scopes: number }[]>("watch");
    assert.deepEqual(
      seen.map(({ step, scopes }) => [step, scopes]),
      ["save", "restore", "unload", "reloaded"].map((step) => [step, 4]),
    );
    assert.equal((await ask("/counter", secret)).status, 200);
  });

  test("belongs to one module: a second one that declares the kind fails, and the error names the first", async (t) => {
    const { host, secretOf, ask, load, plugins } = await served(t, { "mod_shop.js": shop });
    const secret = await secretOf("shop:read");
    const thief = `${plugins}/more/mod_thief.js`;
    await write(plugins, {
      "more/mod_thief.js": `export default (module) => void module.provides("token-scope", ${scopes});`,
    });
    await assert.rejects(load(thief), /The kind of token scopes shop is declared by the module shop already/);
    assert.equal((await ask("/shop", secret)).status, 200);
    assert.deepEqual(host.residue("thief"), []);
  });

  test("with fixed names can be declared and required by isolated modules; functions are refused with the remedy", {
    timeout: 300_000,
  }, async (t) => {
    const own = `export const isolated = true;
      export default (module) => {
        module.depends("http");
        module.provides("token-scope", { kind: "till", help: "the whole till", accesses: { read: "its sum" } });
        const may = (token) => ["read", "sell"].filter((access) => token.allows({ kind: "till", access })).join();
        module.provides("http", { auth: { need: { kind: "till", access: "read" } }, route: { GET: ({ request }) => may(request.token) } });
      };`;
    const running = await served(t, {
      "mod_till.js": own,
      "mod_functions.js": `export const isolated = true;
        export default (module) => void module.provides("token-scope", { kind: "f", forms: [], parse: () => 1, covers: () => true, describe: () => "f" });`,
    });
    const { secretOf, ask, unload, tokens } = running;
    const reader = await secretOf("till:read");
    const owner = await secretOf("till");
    const other = await secretOf("app:till");
    assert.deepEqual([(await ask("/till", reader)).body, (await ask("/till", owner)).body], ["read", "read,sell"]);
    assert.equal((await ask("/till", other)).status, 403);
    assert.match(
      stateOf(running, "functions")?.note ?? "",
      /cannot declare token scopes with functions.*\{ kind, help, accesses \}/,
    );
    await unload("till");
    assert.deepEqual(
      tokens.scopes().map(({ form }) => form),
      ["app:NAME", "*"],
    );
  });
});
