import assert from "node:assert/strict";
import { test } from "node:test";
import { announceDecision } from "#modules/mod_http_api/commands/fast_provide.ts";

type Call = Parameters<typeof announceDecision>[0];

/** Returns what an online node decides for content, and the last line of its log. */
function decide(
  config: Readonly<Record<string, unknown>>,
  { options = {}, isPinned = true, isInFiles = false, importDefaults = true } = {},
) {
  const lines: string[] = [];
  const node = {
    lowLevel: {
      online: true,
      log: { write: (_system: string, _level: string, line: string) => lines.push(line) },
      repo: { config: { value: (key: string) => config[key] } },
    },
  };
  const call = { node, level: { importDefaults }, options } as unknown as Call;
  const announce = announceDecision(call, { content: { isPinned, isInFiles } });
  return [announce, lines.at(-1)?.replace("fast-provide-root: ", "")];
}

test("content is announced at once if the strategy selects it, or if a call requests its whole DAG", () => {
  const asynchronously = [true, "providing asynchronously"];
  for (const strategy of [undefined, "all", "pinned", "roots", "pinned+mfs", "pinned+entities"]) {
    assert.deepEqual(decide({ "Provide.Strategy": strategy }), asynchronously, strategy);
  }
  const mfs = { "Provide.Strategy": "mfs" };
  const skipped = [false, "skipped: strategy does not match content: mfs"];
  assert.deepEqual(decide(mfs), skipped);
  assert.deepEqual(decide(mfs, { isInFiles: true }), asynchronously);
  assert.deepEqual(decide(mfs, { options: { "fast-provide-dag": true } }), asynchronously);
  assert.deepEqual(decide(mfs, { options: { "fast-provide-wait": true } }), skipped);
  assert.deepEqual(decide({ "Provide.Strategy": "roots" }, { isPinned: false })[0], false);
  // The level of go-ipfs, whose configuration has no strategy.
  assert.deepEqual(decide(mfs, { importDefaults: false }), asynchronously);
});

test("flags of a call override the config, which overrides the defaults", () => {
  const off = { "Import.FastProvideRoot": false, "Import.FastProvideWait": true };
  assert.deepEqual(decide(off), [false, "wait-flag-ignored"]);
  assert.deepEqual(decide(off, { options: { "fast-provide-root": true } }), ["wait", "providing synchronously"]);
  assert.deepEqual(decide(off, { options: { "fast-provide-root": true, "fast-provide-wait": false } }), [
    true,
    "providing asynchronously",
  ]);
  assert.deepEqual(decide({}, { options: { "fast-provide-root": false } }), [
    false,
    "skipped: disabled by flag or config",
  ]);
});
