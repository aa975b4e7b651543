import assert from "node:assert/strict";
import { test } from "node:test";
import type { Module, ServerTokens } from "#core/types.ts";
import { addUnpinned, startPinning } from "./support.ts";

test("a server token manages the pins of the user in its scope, and is refused without that scope or after revocation", async () => {
  let made: ServerTokens | undefined;
  const maker = (module: Module) => {
    made = module.server.tokens;
  };
  const enabled = ["http", "http_errors", "http_api", "http_pinning", "maker"];
  const host = await startPinning({ modules_enabled: enabled }, { modules: { maker } });
  try {
    const make = async (name: string, scopes: string[]) => (await made?.create({ name, scopes }))?.secret ?? "";
    const laptop = await make("laptop", ["pinning:anna"]);
    const cid = await addUnpinned(host, "by the laptop\n");
    const { requestid } = await host.pin({ cid }, laptop);
    assert.equal((await host.ask("GET", `/pins/${requestid}`)).status, 200, "the pins are anna's");
    assert.equal((await host.ask("GET", `/pins/${requestid}`, undefined, "token-of-ben")).status, 404);
    const other = await host.ask("GET", "/pins", undefined, await make("other", ["rpc:*"]));
    assert.deepEqual(
      [other.status, other.body],
      [403, { error: { reason: "FORBIDDEN", details: "The token other lacks the scope pinning:USER" } }],
    );
    await made?.revoke("laptop");
    assert.equal((await host.ask("GET", "/pins", undefined, laptop)).status, 401);
  } finally {
    await host.stop();
  }
});
