import assert from "node:assert/strict";
import { test } from "node:test";
import { inRange } from "../../../core/module/range.ts";

const cases: readonly [range: string, inside: readonly string[], outside: readonly string[]][] = [
  ["*", ["0.0.1", "9.9.9"], []],
  ["", ["1.0.0"], []],
  ["1.2.3", ["1.2.3", "1.2.3-beta"], ["1.2.4", "1.2.2"]],
  ["1", ["1.0.0", "1.9.9"], ["2.0.0", "0.9.9"]],
  ["1.x", ["1.5.0"], ["2.0.0"]],
  ["1.2.x", ["1.2.0", "1.2.9"], ["1.3.0"]],
  ["^1.2.3", ["1.2.3", "1.9.0"], ["1.2.2", "2.0.0"]],
  ["^0.1.2", ["0.1.2", "0.1.9"], ["0.2.0", "0.1.1"]],
  ["^0.0.3", ["0.0.3"], ["0.0.4"]],
  ["^0", ["0.0.0", "0.9.0"], ["1.0.0"]],
  ["~1.2.3", ["1.2.3", "1.2.9"], ["1.3.0"]],
  ["~1.2", ["1.2.0"], ["1.3.0"]],
  ["~1", ["1.9.0"], ["2.0.0"]],
  [">=1.0 <3", ["1.0.0", "2.9.9"], ["0.9.9", "3.0.0"]],
  [">= 1.2", ["1.2.0"], ["1.1.9"]],
  [">1.2", ["1.3.0"], ["1.2.9"]],
  [">1.2.3", ["1.2.4"], ["1.2.3"]],
  ["<=1.2", ["1.2.9"], ["1.3.0"]],
  ["^1 || ^3.1", ["1.1.0", "3.2.0"], ["2.0.0", "3.0.0"]],
];

for (const [range, inside, outside] of cases) {
  test(`the range "${range}"`, () => {
    for (const version of inside) assert.ok(inRange(version, range), `${version} is in ${range}`);
    for (const version of outside) assert.ok(!inRange(version, range), `${version} is not in ${range}`);
  });
}
