import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ModhostError } from "#core/util/errors.ts";
import { findToken, readAuthorization, readTokens } from "#core/util/tokens.ts";

const option = {
  name: "some_tokens",
  example: '{ user: "anna" }',
  read: ({ user = "", ...others }: Readonly<Record<string, unknown>>) =>
    typeof user === "string" && Object.keys(others).length === 0 ? { user } : undefined,
};

describe("an option of tokens", () => {
  test("is a list, or an object from token to settings, and is empty if it is not set", () => {
    const users = (value: unknown) => readTokens(value, option).map(({ user }) => user);
    assert.deepEqual(users(["a", "b"]), ["", ""]);
    assert.deepEqual(users({ a: { user: "anna" }, b: null, c: {} }), ["anna", "", ""]);
    assert.deepEqual([users(undefined), users(null)], [[], []]);
  });

  for (const wrong of ["secret", 3, [""], [7], { secret: "x" }, { secret: { other: 1 } }, { secret: { user: 1 } }]) {
    test(`with a wrong value causes an error without the value: ${JSON.stringify(wrong)}`, () => {
      assert.throws(
        () => readTokens(wrong, option),
        (error) => {
          assert.ok(ModhostError.is(error) && error.code === "OPTION_INVALID");
          assert.match(error.message, /^Option some_tokens is \*\*\*, but it must be a list of tokens.*user: "anna"/);
          assert.doesNotMatch(error.message, /secret|other/);
          return true;
        },
      );
    });
  }
});

test("a token is found by its text, and stored only as its digest", () => {
  const tokens = readTokens({ first: { user: "anna" }, second: {} }, option);
  assert.equal(findToken(["first"], tokens)?.user, "anna");
  assert.equal(findToken(["none", "second"], tokens)?.user, "");
  assert.equal(findToken(["none", ""], tokens), undefined);
  assert.equal(findToken([], tokens), undefined);
  assert.doesNotMatch(JSON.stringify(tokens), /first|second/);
});

test("an Authorization header has a scheme and credentials", () => {
  assert.deepEqual(readAuthorization("Bearer  a b "), { scheme: "bearer", credentials: "a b" });
  assert.deepEqual(readAuthorization("BASIC eA=="), { scheme: "basic", credentials: "eA==" });
  assert.equal(readAuthorization("Bearer"), undefined);
  assert.equal(readAuthorization(undefined), undefined);
});
