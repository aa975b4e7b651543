/** Passwords and users of guards. */
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { isPassword, keepPassword, readStored, type StoredPassword } from "#modules/mod_http_guard/passwords.ts";
import { Users } from "#modules/mod_http_guard/users.ts";
import { ran } from "#test/unit/core/cli/called.ts";

test("stored passwords of another format or with excessive costs are ignored", async () => {
  const stored = await keepPassword("x", { ln: 4, r: 8, p: 1 });
  assert.deepEqual([readStored(stored)?.ln, readStored(stored)?.hash.length], [4, 32]);
  for (const wrong of ["", "x", stored.slice(0, -30), stored.replace("ln=4", "ln=20"), stored.replace("p=1", "p=17")]) {
    assert.equal(readStored(wrong), undefined, wrong);
  }
});

test("password checks run one at a time, equal ones only once, and above a number of waiting checks they are refused", async () => {
  const stored = readStored(await keepPassword("right", { ln: 4, r: 8, p: 1 }));
  assert.ok(stored);
  const users = new Users(new Map([["anna", stored]]), () => 0);
  assert.equal(users.check("anna", "right"), users.check("anna", "right"));
  const verdicts = await Promise.all(Array.from({ length: 40 }, (_, at) => users.check("anna", `guess ${at}`)));
  assert.deepEqual([verdicts.filter((one) => one === "wrong").length, verdicts.at(-1)], [31, "busy"]);
  assert.equal(users.check("anna", "right"), "right", "remembered");
});

test("modhost password prints what the options accept, and never shows the password", async () => {
  const made = await ran(tmpdir(), ["password", "anna"], { stdin: "open: sesame\n" });
  const [name, text = ""] = made.stdout.trimEnd().split(":");
  assert.deepEqual([made.code, name, made.stderr], [0, "anna", ""]);
  assert.ok(await isPassword(readStored(text) as StoredPassword, "open: sesame"));
  assert.equal((await ran(tmpdir(), ["password", "an:na"], { stdin: "x\n" })).code, 2);
  assert.equal((await ran(tmpdir(), ["password"], { stdin: "" })).code, 2);
});
