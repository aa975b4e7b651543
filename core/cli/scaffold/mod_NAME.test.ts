import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNothingLeft, createTestHost } from "modhost/testing";

test("visitors are greeted by name", async () => {
  await using server = await createTestHost({ modules: ["./mod_NAME.ts"], config: { NAME_greeting: "Good day" } });
  assert.equal((await server.inject("/APP/greet/Ada")).body, "Good day, Ada!\n");
});

test("an unload leaves nothing", async () => {
  await using server = await createTestHost();
  await server.load("./mod_NAME.ts");
  await server.unload("NAME");
  await assertNothingLeft(server, "NAME");
});
