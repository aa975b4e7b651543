import assert from "node:assert/strict";
import { get, type IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { describe, test } from "node:test";
import { TestService } from "#test/support/service.ts";

function fetchRaw(url: string): Promise<{ response: IncomingMessage; body: string }> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        body += chunk;
      });
      response.on("end", () => resolve({ response, body }));
      response.on("error", reject);
    }).on("error", reject);
  });
}

describe("fields after the body", () => {
  test("trailers follow a streamed and a whole body, and are announced", async () => {
    let lines = 0;
    await using host = await TestService.start({
      route: {
        "GET /object": (event) => {
          event.response.trailers = { x_checksum: "abc" };
          return "whole";
        },
        "GET /function": (event) => {
          event.response.trailer_names = ["X-Lines"];
          event.response.trailers = () => ({ x_lines: lines });
          return Readable.from(
            (async function* () {
              for (; lines < 3; lines += 1) yield "line\n";
            })(),
          );
        },
      },
    });
    const whole = await fetchRaw(host.url("/app/object"));
    assert.deepEqual(
      [whole.body, whole.response.headers.trailer, whole.response.trailers["x-checksum"]],
      ["whole", "X-Checksum", "abc"],
    );
    const streamed = await fetchRaw(host.url("/app/function"));
    assert.deepEqual([streamed.response.headers.trailer, streamed.response.trailers["x-lines"]], ["X-Lines", "3"]);
  });

  test("a header Trailer announces trailers when they can follow, and is left out otherwise", async () => {
    const headers = { trailer: "x-sum" };
    const pieces = async function* () {
      yield "s";
    };
    await using host = await TestService.start({
      route: {
        "GET /whole": () => ({ body: "whole", headers }),
        "GET /empty": () => ({ status_code: 204, headers }),
        "GET /known": () => ({ body: pieces(), headers: { ...headers, content_length: 1 } }),
        "GET /stream": () => ({ body: pieces(), headers }),
        "GET /object": () => ({ body: "whole", headers: { Trailer: "X-Sum, x-more" }, trailers: { x_sum: "1" } }),
        "GET /function": () => ({ body: "whole", headers, trailers: () => ({ x_sum: "2" }) }),
      },
    });
    const reported: Record<string, unknown> = {};
    for (const path of ["whole", "empty", "known", "stream", "object", "function"]) {
      const { response, body } = await fetchRaw(host.url(`/app/${path}`));
      reported[path] = [response.statusCode, response.headers.trailer, response.trailers["x-sum"], body];
    }
    assert.deepEqual(reported, {
      whole: [200, undefined, undefined, "whole"],
      empty: [204, undefined, undefined, ""],
      known: [200, undefined, undefined, "s"],
      stream: [200, "X-Sum", undefined, "s"],
      object: [200, "X-Sum, X-More", "1", "whole"],
      function: [200, "X-Sum", "2", "whole"],
    });
    assert.deepEqual(host.errors, []);
  });

  test("a head that Node refuses becomes a 500 with its own phrase", async () => {
    await using host = await TestService.start({
      route: { "GET /": () => ({ status: "200 no\nphrase", body: "x" }) },
    });
    const { response } = await fetchRaw(host.url("/app/"));
    assert.deepEqual([response.statusCode, response.statusMessage], [500, "Internal Server Error"]);
  });
});
