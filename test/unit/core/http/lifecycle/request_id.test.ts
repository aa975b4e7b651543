import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startHost } from "#test/support/host.ts";

async function idOf(given: string, trusted: readonly string[]): Promise<{ id: string; page: string; log: string }> {
  let id = "";
  await using host = await startHost({
    config: { modules_enabled: ["http", "http_errors"], trusted_proxies: trusted },
    modules: {
      mod_a(module) {
        module.depends("http");
        module.provides("http", {
          route: {
            "GET /": ({ request }) => {
              id = request.id;
              throw new Error("on purpose");
            },
          },
        });
      },
    },
  });
  const headers = { "x-request-id": given, accept: "text/plain" };
  const page = await fetch(`http://127.0.0.1:${host.http}/a`, { headers }).then((response) => response.text());
  return { id, page, log: host.log() };
}

describe("the id of a request", () => {
  test("is the one that a trusted proxy sent, also in the log and on the error page", async () => {
    const { id, page, log } = await idOf("7f9c24e8-3b13-4a0e", ["127.0.0.1"]);
    assert.equal(id, "7f9c24e8-3b13-4a0e");
    assert.match(page, /\(request 7f9c24e8-3b13-4a0e\)/);
    assert.match(log, /request 7f9c24e8-3b13-4a0e GET \/a\/ failed/);
  });

  test("is the host's own when an untrusted client sends one, or a proxy sends an invalid one", async () => {
    assert.match((await idOf("7f9c24e8", [])).id, /^\w{5}-\w+$/);
    for (const wrong of ['a"b', "a b", "x".repeat(129)]) {
      assert.match((await idOf(wrong, ["127.0.0.1"])).id, /^\w{5}-\w+$/, wrong);
    }
  });
});
