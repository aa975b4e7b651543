/**
 * Tests that the page of token scopes lists what the bundled modules declare when they are loaded.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundledScopes } from "#config/build/generate/token_scopes.ts";
import { createTestHost } from "#core/testing/index.ts";
import type { DeclaredTokenScope, Module, ServerTokens } from "#core/types.ts";

const byForm = (scopes: readonly DeclaredTokenScope[]) =>
  scopes.map(({ form, module = "" }) => `${form} ${module}`).sort();

test("each token scope of the page is declared by the module that the page names, once it is loaded", async (t) => {
  const shown = await bundledScopes();
  const modules_enabled = [...new Set(shown.flatMap(({ module }) => module ?? []))];
  assert.deepEqual([...modules_enabled].sort(), ["http_admin", "http_api", "http_openmetrics", "http_pinning"]);
  let tokens: ServerTokens | undefined;
  const reader = { name: "reader", load: (module: Module) => void (tokens = module.server.tokens) };
  const host = await createTestHost({
    config: { modules_enabled, node_offline: true },
    modules: [reader],
    listen: false,
  });
  t.after(() => host.stop());
  assert.deepEqual(byForm(tokens?.scopes() ?? []), byForm(shown));
});
