/**
 * Hostile modules try to escape from a running server. `npm run test:escape` does so with every
 * combination of layers and users.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runModules, unavailable } from "#test/support/sandbox/combinations.ts";

describe("hostile modules in a server", { skip: unavailable }, () => {
  test("get nothing, change nothing, and are refused with what would allow it", { timeout: 300_000 }, async () => {
    const { attempts, changed } = await runModules({ namespaces: "auto", messages: false });
    const faults = attempts.flatMap(({ name, fault }) => (fault === undefined ? [] : [`${name}: ${fault}`]));
    assert.deepEqual(faults, []);
    assert.deepEqual(changed, []);
    assert.ok(attempts.length >= 125, `${attempts.length} attempts`);
  });
});
