import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { failure, failures, NodeError, reworded } from "#node/util/errors.ts";
import { callFailures } from "#node/util/failures/calls.ts";
import { contentFailures } from "#node/util/failures/content.ts";
import { formatFailures } from "#node/util/failures/formats.ts";
import { networkFailures } from "#node/util/failures/network.ts";
import { storageFailures } from "#node/util/failures/storage.ts";

test("a failure of the table has its code, its text with the details filled in, and its cause", () => {
  const cause = new Error("disk on fire");
  const made = failure("STORE_BROKEN", { path: "/data", reason: cause.message }, cause);
  assert.equal(made.code, "STORE_BROKEN");
  assert.equal(made.message, "the block store at /data cannot be read: disk on fire");
  assert.equal(made.cause, cause);
  assert.equal(made.kind, "failure");
});

test("a failure has the kind of its code, and the table names each code once", () => {
  assert.equal(failure("SESSION_LOST").kind, "unavailable");
  assert.equal(failure("DAEMON_NOT_RUNNING").kind, "client");
  const subjects = [callFailures, contentFailures, formatFailures, networkFailures, storageFailures];
  const codes = subjects.flatMap((subject) => Object.keys(subject));
  assert.deepEqual(Object.keys(failures).sort(), codes.sort());
});

test("a failure with another text has the code, and no details", () => {
  const made = new NodeError("FILE_EXISTS", "cannot create directory '/': Already exists");
  assert.equal(made.code, "FILE_EXISTS");
  assert.equal(made.details, undefined);
  assert.deepEqual(failure("FILE_EXISTS").details, {});
});

test("a reworded failure has the code and the kind of the failure that is its cause", () => {
  const cause = new NodeError("OPTION_INVALID", "no", { kind: "client" });
  const made = reworded(cause, "set: no");
  assert.deepEqual([made.code, made.kind, made.message], ["OPTION_INVALID", "client", "set: no"]);
  assert.equal(made.cause, cause);
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
