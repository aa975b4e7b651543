import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { TestService } from "#test/support/service.ts";

describe("traps of Koa that the host avoids", () => {
  test("headers that are set before a failure stay", async () => {
    await using host = await TestService.start({
      route: {
        "GET /": (event) => {
          event.response.headers.www_authenticate = 'Basic realm="x"';
          event.response.headers.x_kept = "yes";
          throw 401;
        },
      },
    });
    const response = await fetch(host.url("/app/"));
    assert.deepEqual(
      [response.status, response.headers.get("www-authenticate"), response.headers.get("x-kept")],
      [401, 'Basic realm="x"', "yes"],
    );
  });

  test("forwarding headers of a direct client are ignored", async () => {
    await using host = await TestService.start({
      route: { "GET /": ({ request }) => `${request.ip} ${request.secure} ${request.host}` },
    });
    const forged = {
      "X-Forwarded-For": "203.0.113.7",
      "X-Forwarded-Proto": "https",
      "X-Forwarded-Host": "evil.example",
    };
    assert.equal(await (await fetch(host.url("/app/"), { headers: forged })).text(), "127.0.0.1 false *");
  });

  test("no type is guessed, and only Content-Length is set", async () => {
    await using host = await TestService.start({
      route: { "GET /": () => "<b>text</b>", "GET /object": () => ({ body: '{"a":1}' }) },
    });
    for (const path of ["/app/", "/app/object"]) {
      const { headers } = await fetch(host.url(path));
      assert.deepEqual([...headers.keys()].sort(), ["connection", "content-length", "date", "keep-alive"]);
    }
  });

  test("each step of the pipeline responds itself, without Koa's 404", async () => {
    await using host = await TestService.start({ route: { "GET /": () => undefined } });
    const none = await fetch(host.url("/app/"));
    const other = await fetch(host.url("/nowhere"));
    assert.deepEqual([none.status, other.status], [404, 404]);
    assert.deepEqual(host.errors, []);
  });
});
