/**
 * Responses that Node sends in only one version of HTTP, or in a form that no client understands.
 */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, test } from "node:test";
import type { RouteTable } from "#core/types.ts";
import { startHost } from "#test/support/host.ts";

/** Starts a host with one module, `app`, that has these routes. */
const serving = (route: RouteTable, config: Record<string, unknown> = {}) =>
  startHost({
    config,
    modules: {
      mod_app(module) {
        module.depends("http");
        module.provides("http", { route });
      },
    },
  });

/** Header names of which Node sends only one line by default. */
const single = ["etag", "location", "date", "expires", "retry_after", "content_location"];
/** Connection-specific header names. */
const ofConnection = ["te", "http2_settings", "connection", "keep_alive", "proxy_connection", "upgrade"];

describe("by HTTP/2", () => {
  test("a response has both lines of a repeated header, and no connection-specific headers", async () => {
    await using host = await serving({
      "GET /two/*": (_, name?: string) => ({ headers: { [String(name)]: ["a/b", "c/d"] }, body: "text" }),
      "GET /hop/*": (_, name?: string) => ({ headers: { [String(name)]: "x" }, body: "text" }),
    });
    const client = host.client("HTTP/2");
    for (const name of single) {
      const { status, text, header } = await client.request(`/app/two/${name}`);
      assert.deepEqual([status, text], [200, "text"], name);
      assert.match(String(header(name.replaceAll("_", "-"))), /^a\/b/, name);
    }
    for (const name of ofConnection) {
      const { status, text, header } = await client.request(`/app/hop/${name}`);
      assert.deepEqual([status, text, header(name.replaceAll("_", "-"))], [200, "text", undefined], name);
    }
    assert.doesNotMatch(host.log(), /"level":"error"/);
  });

  test("a client's stream is ended when not even the error page can be sent", async () => {
    await using host = await serving({
      "GET /": async ({ response }) => {
        // Node accepts this header on its own response, and then fails at each attempt to send a
        // head.
        response.raw.setHeader("Transfer-Encoding", "x");
        return "text";
      },
    });
    await assert.rejects(host.client("HTTP/2").request("/app/"));
    assert.match(host.log(), /The error page of request \S+ cannot be sent/);
    assert.doesNotMatch(host.log(), /Uncaught error/);
  });
});

test("a status set on the response is used, and 205 has no content, whatever the body and the version", async () => {
  await using host = await serving({
    "GET /whole/*": ({ response }, status?: string) => {
      response.status_code = Number(status);
      return "text";
    },
    "GET /stream/*": ({ response }, status?: string) => {
      response.status_code = Number(status);
      return Readable.from(["text"]);
    },
  });
  for (const by of ["HTTP/1.1", "HTTP/2"] as const) {
    for (const kind of ["whole", "stream"]) {
      const ask = (status: string) => host.client(by).request(`/app/${kind}/${status}`);
      for (const status of ["100", "103", "199", "1000", "200.5", "NaN"])
        assert.equal((await ask(status)).status, 500, `${by} ${kind} ${status}`);
      const reset = await ask("205");
      assert.deepEqual([reset.status, reset.text, reset.header("content-length")], [205, "", "0"], `${by} ${kind}`);
    }
  }
  assert.match(host.log(), /response\.status_code is 103: a status is a whole number from 200 to 999/);
});

test("the last of several content types is sent, and middleware that reads the type gets one", async () => {
  const headers = { content_type: ["text/html", "text/plain"] };
  for (const modules_enabled of [["http"], ["http", "http_compress"]]) {
    await using host = await serving(
      {
        "GET /whole": () => ({ headers, body: "text" }),
        "GET /stream": () => ({ headers, body: Readable.from(["text"]) }),
      },
      { modules_enabled, http_compress: { app: {} } },
    );
    for (const by of ["HTTP/1.1", "HTTP/2"] as const) {
      for (const path of ["/app/whole", "/app/stream"]) {
        const { status, text, lines } = await host.client(by).request(path);
        const types = lines.filter(([name]) => name.toLowerCase() === "content-type").map(([, value]) => value);
        assert.deepEqual([status, text, types], [200, "text", ["text/plain"]], `${by} ${path} ${modules_enabled}`);
      }
    }
    assert.doesNotMatch(host.log(), /"level":"error"/);
  }
});
