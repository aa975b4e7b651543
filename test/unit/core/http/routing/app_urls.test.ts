import assert from "node:assert/strict";
import { test } from "node:test";
import { appName, appPath, basePath, displayName, isWebScheme, originOf } from "#core/http/index.ts";

test("an app has its module's name less one leading http_", () => {
  assert.deepEqual(["hello", "http_hello", "http_http_x", "my_http_x"].map(appName), [
    "hello",
    "hello",
    "http_x",
    "my_http_x",
  ]);
});

test("a path is rooted, has its host's name for $host, and keeps its last slash; a base path does not", () => {
  for (const [configured, path, base] of [
    [undefined, "/app", "/app"],
    ["/", "/", ""],
    ["", "/", ""],
    ["deep/path/", "/deep/path/", "/deep/path"],
    ["/$host/$host", "/$&.example/$&.example", "/$&.example/$&.example"],
  ]) {
    assert.equal(appPath("app", "$&.example", configured), path);
    assert.equal(basePath("app", "$&.example", configured), base);
  }
});

test("an origin leaves the scheme's own port out", () => {
  assert.equal(originOf("http", "x", 80), "http://x");
  assert.equal(originOf("https", "x", 443), "https://x");
  assert.equal(originOf("https", "x", 80), "https://x:80");
});

test("only http and https are schemes of URLs of apps", () => {
  assert.deepEqual(["http", "https", "xmpp", "constructor", undefined].map(isWebScheme), [
    true,
    true,
    false,
    false,
    false,
  ]);
});

test("an address that localhost stands for is shown by that name, and others as in a URL", () => {
  for (const address of ["127.0.0.1", "::1", "0.0.0.0", "::", "*"]) assert.equal(displayName(address), "localhost");
  assert.equal(displayName("127.0.0.2"), "127.0.0.2");
  assert.equal(displayName("2001:db8::1"), "[2001:db8::1]");
});
