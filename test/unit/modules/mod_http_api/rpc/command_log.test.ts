import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandLog } from "#modules/mod_http_api/rpc/command_log.ts";

test("finished commands are dropped next to one that never ends, in any order", () => {
  const log = new CommandLog();
  log.begin("log/tail", [], {});
  for (let round = 0; round < 500; round += 1) {
    const ends = [log.begin("id", [], {}), log.begin("version", [], {})];
    for (const end of ends) end();
  }
  assert.ok(log.list().length <= 20, `${log.list().length} are kept`);
  assert.equal(log.list()[0]?.command, "log/tail");
});

test("the log keeps running commands; finished ones are dropped now and then, or on request", () => {
  const log = new CommandLog();
  const ends = Array.from({ length: 10 }, (_, at) => log.begin("add", [String(at)], {}));
  ends[0]?.();
  assert.deepEqual(
    log
      .list()
      .map(({ id, end }) => [id, end !== undefined])
      .slice(0, 2),
    [
      [1, false],
      [2, false],
    ],
  );
  ends[1]?.();
  assert.equal(log.list().length, 9);
  log.clear();
  assert.equal(log.list().length, 8);
});

test("the log keeps finished commands for the configured time", () => {
  const log = new CommandLog();
  log.keep(60_000);
  for (let at = 0; at < 20; at += 1) log.begin("x", [], {})();
  assert.equal(log.list().length, 20);
  log.clear();
  assert.equal(log.list().length, 0);
});

test("the log reports each start and end once", () => {
  const log = new CommandLog();
  const received: unknown[] = [];
  const stop = log.listen(({ command, end }) => received.push([command, end !== undefined]));
  const end = log.begin("a", [], {});
  end();
  end();
  stop();
  log.begin("b", [], {});
  assert.deepEqual(received, [
    ["a", false],
    ["a", true],
  ]);
});
