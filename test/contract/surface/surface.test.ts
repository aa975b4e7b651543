import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { table } from "#modules/mod_http_api/commands/index.ts";
import { calls, callsAt } from "./calls.ts";
import { differences } from "./compare.ts";
import { readSurface } from "./contract.ts";
import { explained, leftAt } from "./explained.ts";

const surface = readSurface();

describe("the table of commands", () => {
  test("has the 139 endpoints of the contract", () => {
    const commands = table.commands().map(([path]) => path);
    assert.equal(commands.length, 139);
    assert.deepEqual(commands, Object.keys(surface.endpoints).sort());
  });

  test("is declared consistently, at both levels and for the gateway", () => {
    for (const each of [table, table.at("0.43"), table.readOnly(), table.at("0.43").readOnly()]) each.check();
  });

  test("differs from contract and reference only as explained", () => {
    const known = explained["0.9"].flatMap(([, lines]) => lines);
    assert.deepEqual(differences(table, surface).sort(), known.sort());
  });

  test("is called completely by npm run surface", () => {
    assert.deepEqual(Object.keys(calls).sort(), Object.keys(surface.endpoints).sort());
  });
});

describe("the table of commands at the level 0.43", () => {
  const surface = readSurface("0.43");

  test("differs from Kubo's only as explained, or as listed to be removed", () => {
    const known = new Set([...explained["0.43"].flatMap(([, lines]) => lines), ...leftAt("0.43")]);
    const found = differences(table.at("0.43"), surface);
    assert.deepEqual(
      found.filter((line) => !known.has(line)),
      [],
    );
  });

  test("is called completely by npm run surface -- --level 0.43", () => {
    assert.deepEqual(
      Object.keys(surface.endpoints).filter((path) => !(path in callsAt("0.43"))),
      [],
    );
  });
});
