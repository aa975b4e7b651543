/** Descriptions of guards: `describe` of their middleware, which the Admin API shows. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { DescribedLayer } from "#core/http/index.ts";
import type { HttpMiddleware, Module } from "#core/types.ts";
import { keepPassword } from "#modules/mod_http_guard/passwords.ts";
import { adminHost } from "#test/unit/modules/mod_http_admin/support.ts";

const app = (module: Module) => module.provides("http", { route: { "GET /": () => "here" } });

const provide = (module: Module, more: Partial<HttpMiddleware>) =>
  module.provides("http-middleware", { middleware: (_context, next) => next(), ...more });

function fails(): never {
  throw new Error("no words");
}

describe("GET /middleware of the Admin API", () => {
  test("shows what each guard does, host by host, and what it has refused, without secrets", async (t) => {
    const stored = await keepPassword("open sesame", { ln: 4, r: 8, p: 1 });
    const host = await adminHost(t, {
      modules: [{ name: "mod_notes", load: app }],
      config: {
        modules_enabled: ["http", "http_admin", "http_guard"],
        http_guard: {
          "*": { hsts: "180d", headers: { "X-Key": "a secret" } },
          notes: { users: ["anna"], token_scope: "notes", rate: "1/h", burst: 2, deny: ["10.0.0.0/8"] },
        },
        http_guard_users: { anna: stored },
        hosts: { "a.test": {}, "b.test": { http_guard: { notes: { allow: ["192.0.2.0/24"] } } } },
        http_default_host: "a.test",
      },
    });
    const statuses = [];
    for (let tries = 0; tries < 4; tries += 1) statuses.push((await host.inject("/notes/")).status);
    assert.deepEqual(statuses, [401, 401, 429, 429]);
    const { value } = await host.call<DescribedLayer[]>("GET", "/middleware");
    const [all, one] = value;
    assert.deepEqual(
      [all?.name, all?.apps, all?.requests, all?.answered, one?.name, one?.apps, one?.requests, one?.answered],
      ["guard of *", undefined, 4, 0, "guard of notes", ["notes"], 4, 4],
    );
    assert.deepEqual(all?.settings, [
      { title: "Headers", text: "Strict-Transport-Security, X-Key" },
      { title: "HTTPS", text: "browsers use only HTTPS for 180 d" },
      { title: "Guard", text: "none", host: "b.test" },
    ]);
    assert.deepEqual(one?.settings, [
      { title: "Addresses", text: "not 10.0.0.0/8" },
      { title: "Rate", text: "1/h from an address, 2 at once" },
      { title: "Sign-in", text: "password of anna, or token with scope app:notes" },
      { title: "Addresses", text: "only 192.0.2.0/24", host: "b.test" },
    ]);
    assert.deepEqual(
      one?.counts.map(({ title, value, last }) => [title, value, (last ?? 0) > Date.now() - 60_000]),
      [
        ["Refused sign-ins", 2, true],
        ["Refused by rate", 2, true],
      ],
    );
    assert.doesNotMatch(JSON.stringify(value), /scrypt|a secret/);
  });

  test("lists middleware without a description, and logs one whose description fails", async (t) => {
    const host = await adminHost(t, {
      modules: [
        { name: "mod_plain", load: (module) => provide(module, { name: "plain" }) },
        { name: "mod_broken", load: (module) => provide(module, { name: "broken", describe: fails }) },
      ],
    });
    const { status, value } = await host.call<DescribedLayer[]>("GET", "/middleware");
    assert.equal(status, 200);
    assert.deepEqual(
      value.map(({ name, settings, counts }) => [name, settings, counts]),
      [
        ["plain", [], []],
        ["broken", [], []],
      ],
    );
    const { value: lines } = await host.call<{ msg: string }[]>("GET", "/log");
    assert.ok(lines.some(({ msg }) => /middleware broken cannot be described: no words/.test(msg)));
  });
});
