/** The option `modules`: its checks, its values, and the texts about permissions. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { configFrom } from "#core/config/index.ts";
import {
  denied,
  grantText,
  itemsOf,
  limitsOf,
  type ModuleSettings,
  settingsOf,
  wordsOf,
} from "#core/permissions/index.ts";

/** Returns the problems of the value as one text. */
function problemsOf(modules: unknown): string {
  try {
    configFrom({ modules }, "/").check();
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}

describe("the option modules", () => {
  test("accepts every field, and reads sizes, periods and single values as in other options", () => {
    const modules = {
      shop: {
        run: "sandboxed",
        grant: {
          read: ["./templates", "/srv/pictures"],
          write: "data",
          connect: ["api.example.org:443"],
          env: ["SHOP_KEY"],
          options: ["http_external_url"],
          call: { node: ["cat", "pin.ls"], catalog: true },
          listen: 8080,
          run: ["/usr/bin/convert"],
          addons: true,
        },
        limits: { message_size: "128KiB" },
        audit: true,
        namespaces: "required",
      },
      plain: {},
    };
    assert.equal(problemsOf(modules), "");
    const shop = settingsOf(configFrom({ modules }, "/").value("modules"), "shop");
    assert.deepEqual([shop.grant?.write, shop.grant?.listen], [["data"], [8080]]);
    assert.deepEqual(shop.limits, {
      memory: 512 * 2 ** 20,
      cpu: 1,
      request_cpu: 10,
      processes: 16,
      open_files: 1024,
      disk: 2 ** 30,
      requests: 1000,
      subrequests: 50,
      log_lines: 100,
      message_size: 128 * 2 ** 10,
    });
    assert.deepEqual(limitsOf({}), { ...shop.limits, message_size: 4 * 2 ** 20 });
    const plain = settingsOf(configFrom({ modules }, "/").value("modules"), "plain");
    assert.deepEqual(plain, { audit: false, namespaces: "auto", spare: false } satisfies ModuleSettings);
  });

  test("refuses unknown fields, and names the nearest one", () => {
    assert.match(problemsOf({ shop: { grants: {} } }), /modules\.shop\.grants is .*: is grant meant\?/);
    assert.match(problemsOf({ shop: { grant: { conect: [] } } }), /grant\.conect is .*: is connect meant\?/);
    assert.match(
      problemsOf({ shop: { limits: { open_file: 100 } } }),
      /limits\.open_file is .*: is open_files meant\?/,
    );
  });

  test("refuses wrong values with path and reason", () => {
    const cases: readonly [settings: object, reason: RegExp][] = [
      [{ run: "boxed" }, /modules\.shop\.run is "boxed", but it must be one of trusted, isolated, sandboxed/],
      [
        { grant: { connect: ["example.org"] } },
        /modules\.shop\.grant\.connect is "example\.org", but it must be a host and a port/,
      ],
      [{ grant: { read: ["data"] } }, /grant\.read is "data", but the word data is only for write/],
      [{ grant: { read: ["~/x"] } }, /grant\.read is "~\/x", but the shell alone knows ~/],
      [{ grant: { write: ["/srv/*"] } }, /grant\.write is "\/srv\/\*", but it must be one path/],
      [{ grant: { env: ["NODE_OPTIONS"] } }, /grant\.env is "NODE_OPTIONS", but it would change how/],
      [{ grant: { env: ["modhost_admin_tokens"] } }, /but it sets an option of the server/],
      [{ grant: { env: ["A B"] } }, /but it must be the name of an environment variable/],
      [{ grant: { options: ["hosts"] } }, /grant\.options is "hosts", but hosts contains the options of other modules/],
      [{ grant: { options: ["modules"] } }, /but modules contains the options/],
      [{ grant: { call: { node: "cat" } } }, /grant\.call\.node is "cat", but it must be true or a list of functions/],
      [
        { grant: { call: { node: ["pin..ls"] } } },
        /grant\.call\.node is "pin\.\.ls", but it must be the name of a function/,
      ],
      [{ grant: { listen: [0] } }, /grant\.listen is "0", but it must be a port from 1 to 65535/],
      [{ grant: { run: ["convert"] } }, /grant\.run is "convert", but it must be the path of the program/],
      [{ limits: { message_size: "1KiB" } }, /limits\.message_size is "1KiB", but it must be a number of bytes/],
    ];
    for (const [settings, reason] of cases) assert.match(problemsOf({ shop: settings }), reason);
  });

  test("takes the bare names of modules, because another name would match none", () => {
    for (const name of ["mod_shop", "./modules/mod_shop.ts", "@me/modhost-mod-shop", "shop.js"]) {
      assert.match(problemsOf({ [name]: {} }), /the name is the one that modhost modules lists: write shop/);
    }
  });

  test("has no entry for names that every object has", () => {
    assert.deepEqual(settingsOf({}, "constructor"), { audit: false, namespaces: "auto", spare: false });
  });
});

describe("a permission", () => {
  const all = itemsOf({
    read: ["/srv/pictures"],
    write: ["data"],
    connect: ["api.example.org:443"],
    env: ["SHOP_KEY"],
    options: ["http_external_url"],
    call: { node: ["pin.ls"], catalog: true },
    listen: [8080],
    run: ["/usr/bin/convert"],
    addons: true,
  });

  test("is described in plain words", () => {
    assert.deepEqual(all.map(wordsOf), [
      "may read /srv/pictures",
      "may write its own data folder",
      "may connect to api.example.org:443",
      "may see the environment variable SHOP_KEY",
      "may read the option http_external_url",
      "may call node.pin.ls",
      "may call every function of catalog",
      "may listen on port 8080",
      "may run /usr/bin/convert",
      "may load native addons",
    ]);
  });

  test("is granted by the text that its refusal shows", () => {
    for (const permission of all) {
      const text = grantText("shop", permission);
      const [, value = ""] = /^modules: (.*)$/.exec(text) ?? [];
      // The flow form of YAML with plain keys is an object literal as well.
      const modules = new Function(`return ${value}`)() as Record<string, ModuleSettings>;
      assert.equal(problemsOf(modules), "");
      assert.deepEqual(itemsOf(modules.shop?.grant ?? {}), [permission]);
      const error = denied("shop", permission);
      assert.equal(error.code, "PERMISSION_DENIED");
      assert.ok(error.message.includes(text));
    }
    assert.match(grantText("http-shop", all[0]!), /^modules: \{ "http-shop": \{ grant:/);
  });
});
