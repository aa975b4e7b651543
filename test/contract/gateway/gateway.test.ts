import assert from "node:assert/strict";
import { test } from "node:test";
import { faultsOf, readExplanations } from "./explained.ts";
import { type Played, replay } from "./replay.ts";
import { startGateway } from "./server.ts";

test("recorded requests get the recorded responses, or differ as explained", async () => {
  await using server = await startGateway();
  const played = await replay(server.url);
  assert.deepEqual(faultsOf(played, await readExplanations()), []);
  assert.ok(played.filter(({ state }) => state === "ok").length > 310);
});

test("explanations match exactly the requests that differ", () => {
  const played = (id: string, state: Played["state"]): Played => ({
    id,
    state,
    differences: state === "ok" ? [] : ["x"],
  });
  const all = [
    played("a/fits", "ok"),
    played("a/not", "differs"),
    played("a/quirk", "quirk"),
    played("a/said", "differs"),
  ];
  const explained = new Map(["a/fits", "a/said", "a/gone"].map((id) => [id, "so"]));
  assert.deepEqual(faultsOf(all, explained), [
    "a/fits is explained, but does not differ",
    "a/not\n    x",
    "a/gone: the request does not exist",
  ]);
});
