import { describe, test } from "node:test";
import { drives } from "./drives.ts";
import { short } from "./libraries.ts";

describe("real client libraries, and what they leave out", () => {
  for (const { name, run } of drives(short)) {
    test(name, async () => {
      for await (const _ of run());
    });
  }
});
