import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { table } from "#modules/mod_http_api/commands/index.ts";
import { calls } from "./calls.ts";
import { differences } from "./compare.ts";
import { readSurface } from "./contract.ts";
import { explained } from "./explained.ts";

const surface = readSurface();

describe("the table of commands", () => {
  test("has the 139 endpoints of the contract", () => {
    const commands = table.commands().map(([path]) => path);
    assert.equal(commands.length, 139);
    assert.deepEqual(commands, Object.keys(surface.endpoints).sort());
  });

  test("differs from contract and reference in nothing but what is explained", () => {
    const known = explained.flatMap(([, lines]) => lines);
    assert.deepEqual(differences(table, surface).sort(), known.sort());
  });

  test("is called whole by npm run surface", () => {
    assert.deepEqual(Object.keys(calls).sort(), Object.keys(surface.endpoints).sort());
  });
});
