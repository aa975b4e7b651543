import { describe, test } from "node:test";
import { drives } from "./drives.ts";
import { short } from "./libraries.ts";

/** The long form, with every method of every client: `npm run test:clients`. */
describe("real client libraries, and what they leave out", () => {
  for (const { name, run } of drives(short, ["kubo-rpc-client"])) {
    test(name, async () => {
      for await (const _ of run());
    });
  }
});
