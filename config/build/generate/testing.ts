/** Generates `docs/reference/testing.md`: the exports of `modhost/testing`. */
import { page } from "./markdown.ts";
import { typeLinks } from "./module_api.ts";
import type { Sources } from "./sources.ts";
import { calledFirst, describe, linksTo } from "./types.ts";

const entry = "core/testing/index.ts";

export function testingPage(sources: Sources): string {
  const all = calledFirst(sources.exportsOf(entry));
  const package_ = linksTo("module-api.md", sources.exportsOf("core/index.ts"));
  const links = new Map([...package_, ...typeLinks(sources), ...linksTo("", all)]);
  return page("Test kit", entry, [introduction(sources), ...all.map((exported) => describe(exported, links))]);
}

function introduction(sources: Sources): string {
  return `${sources.introductionOf(entry)}

\`\`\`ts
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Module, text } from "modhost";
import { createTestHost } from "modhost/testing";

test("greets", async () => {
  const hello = {
    name: "hello",
    load(module: Module) {
      module.depends("http");
      module.provides("http", { route: { "GET /": () => text("Hello, world!\\n") } });
    },
  };
  await using server = await createTestHost({ modules: [hello] });
  const response = await server.fetch("/hello/");
  assert.equal(await response.text(), "Hello, world!\\n");
});
\`\`\`

Instead of a module, \`modules\` may contain the path of its file, such as \`"./mod_hello.ts"\`.`;
}
