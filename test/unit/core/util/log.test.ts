import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createLog, type LogSettings } from "#core/util/log.ts";

function logOf(settings: LogSettings & { isTTY?: boolean } = {}) {
  let text = "";
  const destination = { write: (line: string) => void (text += line), isTTY: settings.isTTY ?? false };
  return { log: createLog({ ...settings, destination }), text: () => text };
}

test("a line is JSON with time, level, message, and module and host where they are known", () => {
  const { log, text } = logOf();
  log.host.info("started");
  log.of("http", "*").warn("slow: %d", 3);
  log.of("http", "one.example").error("%s", "bad");
  const lines = text()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  for (const line of lines) {
    assert.equal(new Date(String(line.time)).toISOString(), line.time);
    delete line.time;
  }
  assert.deepEqual(lines, [
    { level: "info", msg: "started" },
    { level: "warn", module: "http", msg: "slow: 3" },
    { level: "error", module: "http", host: "one.example", msg: "bad" },
  ]);
});

test("messages below the level are not written, nor put together", () => {
  const { log, text } = logOf({ level: "warn" });
  log.host.info("%s", {
    toString() {
      throw new Error("was formatted");
    },
  });
  log.host("debug", "x");
  assert.equal(text(), "");
});

test("the pretty form is for people, and coloured on a terminal only", () => {
  const { log, text } = logOf({ format: "pretty" });
  log.of("http", "one.example").warn("first\nsecond");
  assert.match(text(), /^\d\d:\d\d:\d\d warn {2}one\.example:http {2}first\n {4}second\n$/);
});

test("the pretty form lets nobody steer the terminal or forge a line", () => {
  const { log, text } = logOf({ format: "pretty" });
  log.of("x\u001b[2J", "*").error("a\u001b[1A\u0007\u009b\u202e\rb\n12:00:00 info  host  forged\r\n\tat frame");
  const [first, ...rest] = text().split("\n");
  assert.match(first ?? "", /^\S+ error x\\x1b\[2J {2}a\\x1b\[1A\\x07\\x9b\\u202e\\x0db$/);
  assert.deepEqual(rest, ["    12:00:00 info  host  forged", "    \tat frame", ""]);
});

test("auto is pretty on a terminal", (t) => {
  const { NO_COLOR } = process.env;
  delete process.env.NO_COLOR;
  t.after(() => NO_COLOR !== undefined && (process.env.NO_COLOR = NO_COLOR));
  const { log, text } = logOf({ isTTY: true });
  log.host.info("hello");
  assert.ok(text().includes("\u001b[36minfo"), text());
  assert.ok(text().includes("hello"));
});

test("a destination may be a file, whose folder is made", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "logs", "host.log");
  const log = createLog({ destination: file });
  log.host.info("kept");
  log.close();
  assert.equal((JSON.parse(await readFile(file, "utf8")) as { msg: string }).msg, "kept");
});

test("a follower that fails hears no more, and whoever writes a line notices nothing", () => {
  const written: string[] = [];
  const log = createLog({ destination: { write: (line) => void written.push(line) }, format: "json" });
  const heard: string[] = [];
  log.follow(() => {
    throw new Error("out of order");
  });
  log.follow(({ msg }) => void heard.push(msg));
  log.host.info("one");
  log.host.info("two");
  assert.deepEqual(heard, ["one", "two"]);
  const messages = written.map((line) => (JSON.parse(line) as { msg: string }).msg);
  assert.deepEqual(messages, ["one", "A follower of the log failed, and hears no more: out of order", "two"]);
});
