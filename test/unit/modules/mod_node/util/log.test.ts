import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeLog } from "#node/util/log.ts";

test("messages below the level of their subsystem are dropped", () => {
  const log = new NodeLog();
  const heard: string[] = [];
  const deaf = log.listen(({ system, level, message }) => heard.push(`${system} ${level} ${message}`));
  log.write("dht", "warn", "1");
  log.write("dht", "error", "2");
  log.setLevel("dht", "DEBUG");
  log.write("dht", "debug", "3");
  log.write("core", "warn", "4");
  log.setLevel("*", "");
  log.write("dht", "debug", "5");
  log.write("core", "info", "6");
  deaf();
  log.write("core", "fatal", "7");
  assert.deepEqual(heard, ["dht error 2", "dht debug 3", "core info 6"]);
  assert.throws(() => log.setLevel("nosuch", "loud"), { message: 'unrecognized level: "loud"' });
  assert.throws(() => log.setLevel("nosuch", "info"), { message: "Error: No such logger" });
});

test("with `lenient`, unknown names get a level, and `default` means the level of the others", () => {
  const log = new NodeLog();
  assert.equal(log.setLevel("another", "debug", true), "debug");
  assert.equal(log.level("another"), "debug");
  assert.ok(log.names.includes("another"));
  assert.equal(log.setLevel("another", "default", true), "error");
  assert.equal(log.setLevel("*", "default", true), "error");
  assert.throws(() => log.setLevel("core", "default"), { message: 'unrecognized level: "default"' });
});
