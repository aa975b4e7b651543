/** The consequences of a failing handler: the status, the page, the log and the connection. */
import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import type { Module } from "#core/types.ts";
import { HttpError } from "#core/util/errors.ts";
import { withHost } from "#test/support/host.ts";
import { overEach } from "#test/support/transports.ts";

const secret = "the cause, which no client may read";

const host = withHost({
  modules: {
    mod_http_fail(module: Module) {
      module.depends("http");
      module.provides("http", {
        route: {
          "GET /throw"() {
            throw new Error(secret);
          },
          "GET /throw-string"() {
            throw secret;
          },
          "GET /throw-number"() {
            throw 404;
          },
          "GET /throw-http"() {
            throw new HttpError(409, "shown & <escaped>");
          },
          "GET /throw-hidden"() {
            throw new HttpError(502, secret);
          },
          "GET /throw-coded"() {
            throw Object.assign(new Error(secret), { code: 403 });
          },
          "GET /throw-system"() {
            throw Object.assign(new Error(secret), { code: "ENOENT" });
          },
          "GET /reject-number": () => Promise.reject(410),
          "GET /reject-string": () => Promise.reject(secret),
          "GET /reject-nothing": () => Promise.reject(),
          "GET /reject-error": () => Promise.reject(new Error(secret)),
          "GET /reject-http": () => Promise.reject(new HttpError(422, "say what is wrong")),
          async "GET /late"() {
            await turn();
            throw new Error(secret);
          },
          "GET /fine": () => "fine",
          "GET /port": ({ request }) => `${request.conn.clientport()}`,
          async *"GET /broken-stream"() {
            yield "begun ";
            throw new Error(secret);
          },
        },
      });
    },
  },
});

overEach(host, "D25 a thrown or rejected number is that status with its page", async (client) => {
  for (const [path, status] of [
    ["/fail/throw-number", 404],
    ["/fail/reject-number", 410],
  ] as const) {
    const reply = await client.request(path);
    assert.equal(reply.status, status);
    assert.match(reply.text, new RegExp(`${status}`));
  }
});

overEach(host, "D26 a thrown HttpError is its code, and its text is shown if exposed", async (client) => {
  const shown = await client.request("/fail/throw-http");
  assert.equal(shown.status, 409);
  assert.match(shown.text, /shown &(amp|#38); &(lt|#60);escaped&(gt|#62);/);
  const rejected = await client.request("/fail/reject-http");
  assert.equal(rejected.status, 422);
  assert.match(rejected.text, /say what is wrong/);
  const hidden = await client.request("/fail/throw-hidden");
  assert.equal(hidden.status, 502);
  assert.doesNotMatch(hidden.text, new RegExp(secret));
  assert.equal(await client.status("/fail/throw-coded"), 403);
});

overEach(
  host,
  "D27 any other failure is a 500 whose cause is logged with the request's id and never sent",
  async (client) => {
    const failing = [
      "throw",
      "throw-string",
      "throw-system",
      "reject-string",
      "reject-nothing",
      "reject-error",
      "late",
    ];
    for (const path of failing) {
      const before = host().log().length;
      const reply = await client.request(`/fail/${path}`);
      assert.equal(reply.status, 500, path);
      assert.match(reply.text, /500/);
      assert.doesNotMatch(reply.text + reply.lines.join(), new RegExp(secret), path);
      const logged = host().log().slice(before);
      assert.match(logged, new RegExp(`/fail/${path}`), path);
      if (path !== "reject-nothing") assert.match(logged, new RegExp(secret), path);
      const [id] = /[a-z0-9]+-[a-z0-9]+/.exec(/request (\S+)/.exec(logged)?.[1] ?? "") ?? [];
      assert.ok(id !== undefined && reply.text.includes(id), `${path}: the page and the log contain the same id`);
    }
  },
);

overEach(host, "D28 after a failure the connection stays usable", async (client) => {
  const before = await client.text("/fail/port");
  const failed = await client.request("/fail/throw");
  assert.equal(failed.status, 500);
  assert.notEqual(failed.header("connection"), "close");
  assert.equal(await client.text("/fail/port"), before);
});

overEach(host, "D29 a stream that fails half-way is cut off, so that the client sees it", async (client) => {
  await assert.rejects(client.request("/fail/broken-stream"));
  assert.equal(await client.text("/fail/fine"), "fine");
});
