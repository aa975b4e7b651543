/** A daemon whose config requires secrets, and the command line next to it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, Sandbox, urlOf } from "./support.ts";

test("the owner's command line works with a daemon that requires secrets from callers, and without a daemon", async () => {
  const authorizations = { user: { AuthSecret: "basic:ann:word", AllowedPaths: ["/api/v0/id"] } };
  await using sandbox = await Sandbox.withRepo({ "API.Authorizations": authorizations });
  const offline = await sandbox.does(["id", "-f", "<id>"]);
  const daemon = await sandbox.daemon();
  const api = (await sandbox.api()) as string;
  assert.equal((await call(urlOf(api), "id")).status, 403);
  assert.equal(await sandbox.does(["id", "-f", "<id>"]), offline);
  assert.equal(await sandbox.does([`--api=${api}`, "--api-auth=basic:ann:word", "id", "-f", "<id>"]), offline);
  const refused = await sandbox.node([`--api=${api}`, "--api-auth=basic:ann:word", "pin", "ls"]);
  assert.deepEqual([refused.code, /Kubo RPC Access Denied/.test(refused.stderr)], [1, true]);
  assert.equal((await sandbox.node([`--api=${api}`, "id"])).code, 1);
  await sandbox.does(["shutdown"]);
  assert.equal((await daemon.ended).code, 0);
});
