import assert from "node:assert/strict";
import { STATUS_CODES } from "node:http";
import { after, before, describe, test } from "node:test";
import type { HttpErrorEvent } from "#core/types.ts";
import { HttpError } from "#core/util/errors.ts";
import errors from "#modules/mod_http_errors/index.ts";
import { sentences } from "#modules/mod_http_errors/sentences.ts";
import { Harness } from "#test/unit/modules/harness.ts";

let server: Harness;
let detailed: Harness;

const route = {
  "GET /code/*": (_event: unknown, path: string) => Number(path),
  "GET /says": () => {
    throw new HttpError(400, "<b>bad & 'odd'</b>");
  },
  "GET /throws": () => {
    throw new Error("the <secret> cause");
  },
};

before(async () => {
  server = await new Harness().start();
  errors(server.module("http_errors"));
  server.module("http_app").provides("http", { route });
  detailed = await new Harness().start();
  errors(
    detailed.module("http_errors", {
      http_errors_detailed: true,
      http_errors_default_message: "A code of its own.",
      http_errors_messages: { "404": "Lost & found." },
    }),
  );
  detailed.module("http_app").provides("http", { route });
});

after(() => Promise.all([server.stop(), detailed.stop()]));

describe("the error page", () => {
  test("has its own sentence for every registered code", async () => {
    const codes = Object.keys(STATUS_CODES)
      .map(Number)
      .filter((code) => code >= 400);
    assert.deepEqual(Object.keys(sentences).map(Number), codes);
    assert.equal(new Set(Object.values(sentences)).size, codes.length);
    for (const code of codes) {
      const { status, headers, text } = await server.fetch(`/app/code/${code}`);
      assert.equal(status, code);
      assert.equal(headers["content-type"], "text/html; charset=utf-8");
      assert.ok(text.includes(`<title>${code} `), text);
    }
  });

  test("has a sentence for unregistered codes, too", async () => {
    const { status, text } = await server.fetch("/app/code/599");
    assert.equal(status, 599);
    assert.ok(text.includes("Code 599") && text.includes("The request could not be answered."));
  });

  test("shows an exposed message, escaped", async () => {
    const { status, text } = await server.fetch("/app/says");
    assert.equal(status, 400);
    assert.ok(text.includes("&#60;b&#62;bad &#38; &#39;odd&#39;&#60;/b&#62;"));
  });

  test("never shows the thrown error, but from 500 on the id of the request", async () => {
    const { status, text } = await server.fetch("/app/throws");
    assert.equal(status, 500);
    assert.ok(!text.includes("secret") && !text.includes("cause"));
    const [, id = ""] = /Request ([\w-]+)</.exec(text) ?? [];
    assert.ok(
      server.logged.some(
        (line) => line.startsWith("error") && line.includes(id) && line.includes("the <secret> cause"),
      ),
    );
    assert.ok(!(await server.fetch("/app/code/404")).text.includes("Request "));
  });

  test("belongs to its own request, whatever pages were made before", async () => {
    const pageOf = async (path: string, accept: string) => (await server.fetch(path, { accept })).text;
    for (let at = 0; at < 2; at += 1) {
      assert.match(await pageOf("/app/code/404", "text/html"), /^<!DOCTYPE html>.*404/s);
      assert.match(await pageOf("/app/code/404", "application/json"), /^{"code":404,/);
      assert.match(await pageOf("/app/code/404", "text/plain"), /^404 Not Found: /);
      assert.match(await pageOf("/app/code/403", "text/plain"), /^403 Forbidden: /);
      assert.match(await pageOf("/app/says", "text/plain"), /bad & 'odd'/);
      assert.equal((await pageOf("/app/code/400", "text/plain")).includes("odd"), false);
      assert.notEqual(await pageOf("/app/code/500", "text/plain"), await pageOf("/app/code/500", "text/plain"));
      assert.match((await detailed.fetch("/app/code/404", { accept: "text/plain" })).text, /Lost & found/);
    }
  });

  test("is JSON if the client prefers that", async () => {
    const pageOf = async (path: string, accept: string) => server.fetch(path, { accept });
    const { headers, text } = await pageOf("/app/says", "application/json");
    assert.equal(headers["content-type"], "application/json; charset=utf-8");
    assert.equal(headers.vary, "Accept");
    assert.deepEqual(JSON.parse(text), { code: 400, error: "Bad Request", message: "<b>bad & 'odd'</b>" });
    assert.deepEqual(JSON.parse((await pageOf("/app/code/404", "text/html;q=0.5, application/json")).text), {
      code: 404,
      error: "Not Found",
      message: "There is nothing at this address.",
    });
    assert.equal(typeof JSON.parse((await pageOf("/app/throws", "application/json")).text).id, "string");
    for (const accept of ["*/*", "text/html, application/json", "application/json;q=0, */*", "jsonsense"]) {
      assert.match((await pageOf("/app/code/404", accept)).headers["content-type"] ?? "", /^text\/html/, accept);
    }
  });

  test("is one line of text if the client prefers that", async () => {
    const pageOf = async (path: string, accept: string) => server.fetch(path, { accept });
    const { headers, text } = await pageOf("/app/says", "text/plain");
    assert.deepEqual([headers["content-type"], headers.vary], ["text/plain; charset=utf-8", "Accept"]);
    assert.equal(text, "400 Bad Request: <b>bad & 'odd'</b>\n");
    assert.equal(
      (await pageOf("/app/code/404", "text/plain, */*")).text,
      "404 Not Found: There is nothing at this address.\n",
    );
    assert.match((await pageOf("/app/throws", "text/plain")).text, /^500 Internal Server Error: .* \(request \S+\)\n$/);
    for (const accept of ["text/*", "text/plain;q=0.5, text/html"]) {
      assert.match((await pageOf("/app/code/404", accept)).headers["content-type"] ?? "", /^text\/html/, accept);
    }
  });

  test("needs no other files", async () => {
    assert.doesNotMatch((await server.fetch("/app/code/404")).text, /<script|src=|url\(|@import|<link/i);
  });

  test("is also made for bytes that are not an HTTP request", async () => {
    const socket = await server.raw("nonsense\r\n\r\n");
    const response = Buffer.concat(await socket.toArray()).toString();
    assert.match(response, /^HTTP\/1.1 400 Bad Request\r\n.*<h1><b>400<\/b>Bad Request<\/h1>/s);
  });

  test("is replaced by a hook of any module with the default priority, for the codes that it handles", async () => {
    const remove = server.bus.add("http-error", ({ code }: HttpErrorEvent) => (code === 404 ? "lost" : undefined));
    const pages = await Promise.all([404, 410].map((code) => server.fetch(`/app/code/${code}`)));
    remove();
    assert.equal(pages[0]?.text, "lost");
    assert.match(pages[1]?.text ?? "", /<h1>/);
  });
});

describe("the options of the error page", () => {
  test("show the thrown error, escaped, with http_errors_detailed", async () => {
    const { text } = await detailed.fetch("/app/throws");
    assert.match(text, /<pre>Error: the &#60;secret&#62; cause\n {4}at /);
  });

  test("replace sentences with http_errors_messages and http_errors_default_message", async () => {
    assert.ok((await detailed.fetch("/app/code/404")).text.includes("Lost &#38; found."));
    assert.ok((await detailed.fetch("/app/code/599")).text.includes("A code of its own."));
    assert.ok((await detailed.fetch("/app/code/410")).text.includes(sentences[410] ?? ""));
  });
});
