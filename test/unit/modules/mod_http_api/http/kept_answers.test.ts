import assert from "node:assert/strict";
import { test } from "node:test";
import { KeptAnswers } from "#modules/mod_http_api/http/kept_answers.ts";

async function* texts(...given: string[]) {
  yield* given;
}

const yes = () => true;
const letters = (count: number) => "a".repeat(count);
const mebibyte = 2 ** 20;
const take = (answers: KeptAnswers, name: string, text: string, isWanted = yes) =>
  Array.fromAsync(answers.keeping(name, texts(text), isWanted));

test("an answer that came to its end is there in its pieces", async () => {
  const answers = new KeptAnswers();
  assert.equal(String(await Array.fromAsync(answers.keeping("a", texts("ü", "x"), yes))), "ü,x");
  assert.equal(String(answers.find("a")), "ü,x");
  for await (const _ of answers.keeping("b", texts("1", "2"), yes)) break;
  assert.equal(answers.find("b"), undefined);
  await take(answers, "c", "x", () => false);
  assert.equal(answers.find("c"), undefined);
});

test("what is longer than the bound is not kept, and what was not used for longest goes first", async () => {
  const answers = new KeptAnswers();
  await take(answers, "long", letters(5 * mebibyte));
  assert.equal(answers.find("long"), undefined);
  for (const name of ["a", "b", "a"]) await take(answers, name, letters(3 * mebibyte));
  assert.ok(answers.find("b"));
  await take(answers, "c", letters(3 * mebibyte));
  assert.deepEqual(
    ["a", "b", "c"].map((name) => answers.find(name) !== undefined),
    [false, true, true],
  );
});
