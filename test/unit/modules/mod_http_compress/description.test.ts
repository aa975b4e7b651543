/** The description that compression shows to people. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DescribedLayer } from "#core/http/index.ts";
import type { Module } from "#core/types.ts";
import { adminHost } from "#test/unit/modules/mod_http_admin/support.ts";

test("the Admin API shows what each entry compresses, and how much it has saved", async (t) => {
  const notes = (module: Module) =>
    module.provides("http", {
      route: { "GET /": () => ({ headers: { content_type: "text/plain" }, body: "x".repeat(5000) }) },
    });
  const host = await adminHost(t, {
    modules: [{ name: "mod_notes", load: notes }],
    config: {
      modules_enabled: ["http", "http_admin", "http_compress"],
      http_compress: { "*": {}, notes: { encodings: ["gzip"], types: ["text/plain"], except: ["/notes/own"] } },
    },
  });
  const { status } = await host.inject({ path: "/notes/", headers: { "Accept-Encoding": "gzip" } });
  assert.equal(status, 200);
  const { value } = await host.call<DescribedLayer[]>("GET", "/middleware");
  const layer = value.find(({ name }) => name === "compression of notes");
  assert.deepEqual(layer?.settings, [
    { title: "Encodings", text: "gzip" },
    { title: "From", text: "1024 bytes" },
    { title: "Types", text: "text/plain" },
    { title: "Except", text: "/notes/own" },
  ]);
  const [before, after] = layer?.counts ?? [];
  assert.deepEqual(before, { title: "Gzip, before", value: 5000, unit: "bytes" });
  assert.ok((after?.value ?? 0) > 0 && (after?.value ?? 0) < 5000);
  assert.deepEqual(value.find(({ name }) => name === "compression of *")?.counts, []);
});
