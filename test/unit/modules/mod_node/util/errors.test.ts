import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { failure, NodeError } from "#node/util/errors.ts";

test("a failure of the table has its code, its text with the details filled in, and its cause", () => {
  const cause = new Error("disk on fire");
  const made = failure("STORE_BROKEN", { path: "/data", reason: cause.message }, cause);
  assert.equal(made.code, "STORE_BROKEN");
  assert.equal(made.message, "the block store at /data cannot be read: disk on fire");
  assert.equal(made.cause, cause);
  assert.equal(made.kind, "failure");
});

test("a failure outside the table has no code", () => {
  assert.equal(new NodeError("file already exists").code, undefined);
});

test("failures made by another copy of the package are recognised", async () => {
  const copy = (await import(`#node/util/errors.ts?copy=${Date.now()}`)) as typeof import("#node/util/errors.ts");
  assert.ok(!(copy.failure("OFFLINE") instanceof NodeError));
  assert.ok(NodeError.is(copy.failure("OFFLINE")));
  assert.ok(!NodeError.is(new Error("some other failure")));
});

test("no source tells failures apart by their text", () => {
  const modules = fileURLToPath(new URL("../../../../../modules", import.meta.url));
  const sources = readdirSync(modules, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  assert.ok(sources.length > 300);
  const comparing = sources.filter((name) =>
    /\b(?:error|failure|cause|reason)(?: as Error\))?\.message (?:===|!==)|\.message\.(?:includes|startsWith|endsWith|match)\(/.test(
      readFileSync(join(modules, name), "utf8"),
    ),
  );
  assert.deepEqual(comparing, []);
});
