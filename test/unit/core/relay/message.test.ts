import assert from "node:assert/strict";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { test } from "node:test";
import { wholeBody } from "#core/relay/message.ts";

test("a short body that has arrived in several pieces is returned whole", () => {
  const incoming = new IncomingMessage(new Socket());
  incoming.headers = { "content-length": "6" };
  for (const piece of ["ab", "cd", "ef"]) incoming.push(piece);
  incoming.complete = true;
  assert.equal(String(wholeBody(incoming, "GET")), "abcdef");
});

test("a body that has not arrived completely is left to be read", () => {
  const incoming = new IncomingMessage(new Socket());
  incoming.headers = { "content-length": "6" };
  incoming.push("ab");
  assert.equal(wholeBody(incoming, "GET"), undefined);
  assert.equal(String(incoming.read()), "ab");
});
