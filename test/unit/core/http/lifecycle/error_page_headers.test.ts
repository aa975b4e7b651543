/** An error page has none of the headers of the response that it replaces. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HttpError } from "#core/index.ts";
import type { HttpEvent } from "#core/types.ts";
import { TestService } from "#test/support/service.ts";

const described = {
  cache_control: "public, max-age=31536000",
  "Content-Disposition": 'attachment; filename="report.pdf"',
  content_language: "de",
  expires: "Fri, 01 Jan 2100 00:00:00 GMT",
  etag: '"1"',
  accept_ranges: "bytes",
  x_own: "kept",
  set_cookie: "a=1",
};
const about = ["cache-control", "content-disposition", "content-language", "expires", "etag", "accept-ranges"];
const failing = (fail: () => unknown) => (event: HttpEvent) => {
  Object.assign(event.response.headers, described);
  return fail() as never;
};

const starting = TestService.start({
  route: {
    "GET /missing": failing(() => 404),
    "GET /refused": failing(() => {
      throw new HttpError(403);
    }),
    "GET /broken": failing(() => {
      throw new Error("broken");
    }),
    "GET /unsendable": failing(() => ({ headers: { x_bad: "a\nb" }, body: "never" })),
  },
});
test.after(async () => (await starting)[Symbol.asyncDispose]());

for (const [path, status] of [
  ["/missing", 404],
  ["/refused", 403],
  ["/broken", 500],
  ["/unsendable", 500],
] as const) {
  test(`${path}: the error page has no caching or download headers of the response it replaces`, async () => {
    const service = await starting;
    const reply = await fetch(service.url(`/app${path}`));
    assert.equal(reply.status, status);
    const found = about.flatMap((name) => (reply.headers.has(name) ? [`${name}: ${reply.headers.get(name)}`] : []));
    assert.deepEqual(found, status === 500 ? ["cache-control: no-store"] : []);
    assert.deepEqual([reply.headers.get("x-own"), reply.headers.get("set-cookie")], ["kept", "a=1"]);
    assert.match(await reply.text(), new RegExp(`^${status} `));
  });
}

test("a header that cannot be sent is named in the log, and the page is sent with the other headers", async () => {
  const service = await starting;
  service.hook("http-error", ({ response }: { response: { headers: Record<string, string> } }) => {
    Object.assign(response.headers, { content_type: "text/html; charset=utf-8", x_of_page: "sent", x_hook: "a\r\nb" });
    return "<p>page</p>";
  });
  service.errors.length = 0;
  const reply = await fetch(service.url("/app/unsendable"));
  assert.deepEqual(
    [reply.status, reply.headers.get("x-of-page"), reply.headers.get("x-own"), await reply.text()],
    [500, "sent", "kept", "<p>page</p>"],
  );
  const log = service.errors.join("\n");
  assert.match(log, /X-Bad/);
  assert.match(log, /X-Hook/);
});
