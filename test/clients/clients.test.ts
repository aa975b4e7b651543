import { describe, test } from "node:test";
import { drives } from "./drives.ts";
import { short } from "./libraries.ts";

/** The long form also calls every method of every client: `npm run test:clients`. */
describe("real client libraries, and endpoints that they do not call", () => {
  for (const { name, run } of drives(short, [])) {
    test(name, async () => {
      for await (const _ of run());
    });
  }
});
