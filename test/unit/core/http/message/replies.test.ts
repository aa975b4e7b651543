import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { html, json, redirect, text } from "#core/index.ts";
import { createTestHost } from "#core/testing/index.ts";

const nosniff = { x_content_type_options: "nosniff" };

describe("complete responses", () => {
  test("text() returns plain text in UTF-8 that no browser takes for HTML", () => {
    const headers = { content_type: "text/plain; charset=utf-8", ...nosniff };
    assert.deepEqual(text("é <b>"), { status_code: 200, headers, body: "é <b>" });
    assert.deepEqual(text("no", { status_code: 404, headers: { x_a: "b", content_type: "text/csv" } }), {
      status_code: 404,
      headers: { content_type: "text/csv", ...nosniff, x_a: "b" },
      body: "no",
    });
    assert.throws(() => text(5 as never), /text\(\) takes a string, not a number: use String/);
  });

  test("json() returns JSON, and refuses values that JSON cannot represent", () => {
    assert.deepEqual(json({ a: [1, null] }, { status_code: 201 }), {
      status_code: 201,
      headers: { content_type: "application/json", ...nosniff },
      body: '{"a":[1,null]}',
    });
    assert.throws(() => json(undefined), /json\(\) takes what JSON can hold, not undefined/);
    assert.throws(() => json({ a: 1n }), TypeError);
  });

  test("html escapes values in content and in quoted attributes", () => {
    const { headers, body, status_code } = html`<a title="${`"x' on=`}">${"<script>"}</a>`;
    assert.equal(body, '<a title="&#34;x&#39; on=">&#60;script&#62;</a>');
    assert.deepEqual([status_code, headers], [200, { content_type: "text/html; charset=utf-8", ...nosniff }]);
  });

  test("html inserts its own HTML unchanged, lists one after the other, and undefined as nothing", () => {
    const items = ["a", "<b>"].map((item) => html`<li>${item}</li>`);
    assert.equal(
      html`<ul>${items}</ul>${undefined}${null}${false}${0}`.body,
      "<ul><li>a</li><li>&#60;b&#62;</li></ul>0",
    );
    const forged = JSON.parse('{ "status_code": 200, "headers": {}, "body": "<script>" }');
    assert.doesNotMatch(html`${forged}`.body, /<script>/);
    assert.throws(() => html("<p>" as never), /html is a template tag/);
  });

  test("redirect() returns 303 by default, with a location that a header can carry", () => {
    assert.deepEqual(redirect("list?a=b#c"), { status_code: 303, headers: { location: "list?a=b#c" } });
    assert.deepEqual(redirect(new URL("http://a.example/é"), 308).headers, { location: "http://a.example/%C3%A9" });
    assert.deepEqual(redirect("/x\r\nSet-Cookie: a=b").headers, { location: "/x%0D%0ASet-Cookie:%20a=b" });
    assert.throws(() => redirect("/", 200), /takes the status 301, 302, 303, 307 or 308, not 200/);
  });

  test("are sent unchanged by a route, also as constants", async () => {
    await using host = await createTestHost({
      listen: false,
      modules: [
        {
          name: "say",
          load(module) {
            module.depends("http");
            module.provides("http", {
              route: {
                "GET /text/*": (_event, words) => text(words),
                "GET /html/*": async (_event, words) => ({ ...html`<p>${words}</p>`, status_code: 404 }),
                "GET /json": json([1]),
                "POST /": redirect("text/done"),
              },
            });
          },
        },
      ],
    });
    const script = "%3Cscript%3E";
    const said = await host.inject(`/say/text/${script}`);
    assert.deepEqual(
      [said.body, said.headers["content-type"], said.headers["x-content-type-options"]],
      ["<script>", "text/plain; charset=utf-8", "nosniff"],
    );
    const page = await host.inject(`/say/html/${script}`);
    assert.deepEqual([page.status, page.body], [404, "<p>&#60;script&#62;</p>"]);
    assert.deepEqual((await host.inject("/say/json")).json(), [1]);
    const moved = await host.inject({ method: "POST", path: "/say/" });
    assert.deepEqual([moved.status, moved.headers.location], [303, "text/done"]);
    assert.deepEqual(host.logged("warn"), []);
  });
});
