/** A daemon whose config asks for secrets, and the command line beside it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, Place, urlOf } from "./support.ts";

test("the command line of the owner works with a daemon that asks callers for secrets, and without one", async () => {
  const authorizations = { user: { AuthSecret: "basic:ann:word", AllowedPaths: ["/api/v0/id"] } };
  await using place = await Place.withRepo({ "API.Authorizations": authorizations });
  const offline = await place.does(["id", "-f", "<id>"]);
  const daemon = await place.daemon();
  const api = (await place.api()) as string;
  assert.equal((await call(urlOf(api), "id")).status, 403);
  assert.equal(await place.does(["id", "-f", "<id>"]), offline);
  assert.equal(await place.does([`--api=${api}`, "--api-auth=basic:ann:word", "id", "-f", "<id>"]), offline);
  const refused = await place.node([`--api=${api}`, "--api-auth=basic:ann:word", "pin", "ls"]);
  assert.deepEqual([refused.code, /Kubo RPC Access Denied/.test(refused.stderr)], [1, true]);
  assert.equal((await place.node([`--api=${api}`, "id"])).code, 1);
  await place.does(["shutdown"]);
  assert.equal((await daemon.ended).code, 0);
});
