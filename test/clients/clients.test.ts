import { describe, test } from "node:test";
import { drives } from "./drives.ts";
import { short } from "./libraries.ts";

/** The long form calls every method of every client: `npm run test:clients`. */
describe("real client libraries, and endpoints that they do not call", () => {
  for (const { name, run } of drives(short, ["kubo-rpc-client"])) {
    test(name, async () => {
      for await (const _ of run());
    });
  }
});
