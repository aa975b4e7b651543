import assert from "node:assert/strict";
import { test } from "node:test";
import { ResponseCache } from "#modules/mod_http_api/http/response_cache.ts";

async function* texts(...given: string[]) {
  yield* given;
}

const yes = () => true;
const letters = (count: number) => "a".repeat(count);
const mebibyte = 2 ** 20;
const take = (cache: ResponseCache, name: string, text: string, isWanted = yes) =>
  Array.fromAsync(cache.storing(name, texts(text), isWanted));

test("a complete response is stored with its pieces", async () => {
  const cache = new ResponseCache();
  assert.equal(String(await Array.fromAsync(cache.storing("a", texts("ü", "x"), yes))), "ü,x");
  assert.equal(String(cache.find("a")), "ü,x");
  for await (const _ of cache.storing("b", texts("1", "2"), yes)) break;
  assert.equal(cache.find("b"), undefined);
  await take(cache, "c", "x", () => false);
  assert.equal(cache.find("c"), undefined);
});

test("a response over the limit is not stored, and the least recently used one is dropped first", async () => {
  const cache = new ResponseCache();
  await take(cache, "long", letters(5 * mebibyte));
  assert.equal(cache.find("long"), undefined);
  for (const name of ["a", "b", "a"]) await take(cache, name, letters(3 * mebibyte));
  assert.ok(cache.find("b"));
  await take(cache, "c", letters(3 * mebibyte));
  assert.deepEqual(
    ["a", "b", "c"].map((name) => cache.find(name) !== undefined),
    [false, true, true],
  );
});
