import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Form, formdecode, formencode } from "#core/net/http.ts";

function decoded(text: string): Form {
  const form = formdecode(text);
  assert.notEqual(typeof form, "string", `${text} should be a form`);
  return form as Form;
}

describe("formdecode", () => {
  test("returns the last value by name and all pairs in order", () => {
    const form = decoded("a=1&b=2&a=3");
    assert.equal(form.a, "3");
    assert.equal(form.b, "2");
    assert.deepEqual(
      [...form],
      [
        ["a", "1"],
        ["b", "2"],
        ["a", "3"],
      ],
    );
    assert.deepEqual([...form].length, 3, "it can be iterated again");
  });

  test("lists its names and nothing else", () => {
    assert.deepEqual(Object.keys(decoded("b=2&a=1")), ["b", "a"]);
    assert.equal(JSON.stringify(decoded("b=2&a=1")), '{"b":"2","a":"1"}');
  });

  test("decodes blanks, escapes and UTF-8 in names and values", () => {
    assert.deepEqual(
      [...decoded("first+name=J%C3%BCrgen+M&%3d%26=%2B")],
      [
        ["first name", "Jürgen M"],
        ["=&", "+"],
      ],
    );
  });

  test("splits at the first equals sign", () => assert.equal(decoded("a=b=c").a, "b=c"));

  test("keeps empty names and empty values", () => {
    assert.deepEqual(
      [...decoded("=1&a=&=")],
      [
        ["", "1"],
        ["a", ""],
        ["", ""],
      ],
    );
  });

  test("drops a piece without an equals sign if others have one", () => {
    assert.deepEqual([...decoded("x&a=1&&y")], [["a", "1"]]);
  });

  test("returns the decoded text if there is no equals sign", () => {
    assert.equal(formdecode("hello%20world"), "hello world");
    assert.equal(formdecode("a&b+c"), "a&b+c");
    assert.equal(formdecode(""), "");
  });

  test("keeps invalid escapes", () => assert.equal(decoded("a=100%&b=%zz").a, "100%"));

  test("has no prototype that a field could reach or change", () => {
    const form = decoded("__proto__=x&constructor=y&a=1");
    assert.equal(Object.getPrototypeOf(form), null);
    assert.deepEqual(Object.entries(form), [
      ["__proto__", "x"],
      ["constructor", "y"],
      ["a", "1"],
    ]);
    assert.equal(form.toString, undefined);
  });
});

describe("formencode", () => {
  test("encodes an object, a list of pairs and a Map", () => {
    assert.equal(formencode({ a: "1", b: 2 }), "a=1&b=2");
    assert.equal(
      formencode([
        ["a", "1"],
        ["a", "2"],
      ]),
      "a=1&a=2",
    );
    assert.equal(formencode(new Map([["k", "v"]])), "k=v");
  });

  test("writes a blank as plus, and escapes all reserved characters", () => {
    assert.equal(formencode({ "first name": "a+b & c=d" }), "first+name=a%2bb+%26+c%3dd");
  });

  test("returns an empty text for an empty form", () => {
    assert.equal(formencode({}), "");
    assert.equal(formencode([]), "");
    assert.equal(formencode(new Map()), "");
  });

  test("keeps empty names and values, and the order of the pairs", () => {
    assert.equal(
      formencode([
        ["b", ""],
        ["", "1"],
        ["a", 0],
      ]),
      "b=&=1&a=0",
    );
  });

  test("returns what formdecode has read, in order", () => {
    const text = "a=1&b=+x+&a=%c3%bc&=";
    assert.equal(formencode(decoded(text)), text);
  });
});
