import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createLog, type LogSettings } from "#core/util/log.ts";

function logOf(settings: LogSettings & { isTTY?: boolean } = {}) {
  let text = "";
  const destination = { write: (line: string) => void (text += line), isTTY: settings.isTTY ?? false };
  return { log: createLog({ ...settings, destination }), text: () => text };
}

test("a line is JSON with time, level, message, and module and host if they are known", () => {
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

test("messages below the level are not written, and not even formatted", () => {
  const { log, text } = logOf({ level: "warn" });
  log.host.info("%s", {
    toString() {
      throw new Error("was formatted");
    },
  });
  log.host("debug", "x");
  assert.equal(text(), "");
});

test("the pretty form is for people, and coloured only on a terminal", () => {
  const { log, text } = logOf({ format: "pretty" });
  log.of("http", "one.example").warn("first\nsecond");
  assert.match(text(), /^\d\d:\d\d:\d\d warn {2}one\.example:http {2}first\n {4}second\n$/);
});

test("in the pretty form no text can control the terminal or forge a line", () => {
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

test("a destination may be a file, whose folder is created", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-test-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "logs", "host.log");
  const log = createLog({ destination: file });
  log.host.info("kept");
  log.close();
  assert.equal((JSON.parse(await readFile(file, "utf8")) as { msg: string }).msg, "kept");
});

test("a follower that fails gets no more lines, and the writer of a line gets no error", () => {
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
  assert.deepEqual(messages, ["one", "A log follower failed and was removed: out of order", "two"]);
});

const fieldsOf = (line: string) => {
  const { time: _time, ...fields } = JSON.parse(line) as Record<string, unknown>;
  return fields;
};

describe("fields of a log line", () => {
  test("come from an object before the message, which is formatted as without it", () => {
    const { log, text } = logOf();
    const own = log.of("shop", "*");
    own.info({ user: 7, order: { id: "a", items: [1, 2] } }, "sold %d to %s", 2, "Ann");
    own("warn", { user: 8 });
    own.info({ msg: "from the object", user: 9 });
    own.info({}, "no fields");
    assert.deepEqual(text().trim().split("\n").map(fieldsOf), [
      { level: "info", module: "shop", user: 7, order: { id: "a", items: [1, 2] }, msg: "sold 2 to Ann" },
      { level: "warn", module: "shop", user: 8, msg: "" },
      { level: "info", module: "shop", user: 9, msg: "from the object" },
      { level: "info", module: "shop", msg: "no fields" },
    ]);
  });

  test("do not come from values without fields of their own or after the message, which are formatted", () => {
    const { log, text } = logOf();
    log.host.info("count %s of %j", 3, { a: 1 }, "rest");
    log.host.info([1, 2] as never);
    log.host.info(7 as never, "seven");
    log.host.info(null as never);
    log.host.info(new Map([["a", 1]]));
    const messages = text().trim().split("\n").map(fieldsOf);
    assert.deepEqual(
      messages.map(({ msg }) => msg),
      ['count 3 of {"a":1} rest', "[ 1, 2 ]", "7 seven", "null", "Map(1) { 'a' => 1 }"],
    );
  });

  test("contain an error with its type, message, stack, causes and own fields", () => {
    const { log, text } = logOf();
    class Refused extends Error {
      readonly code = "REFUSED";
    }
    const error = new Refused("no room", { cause: new Error("disk is full") });
    log.host.error(error);
    log.host.error(error, "not kept: %s", "a.txt");
    log.host.warn({ err: error, file: "a.txt" }, "not kept");
    const [alone, before, field] = text().trim().split("\n").map(fieldsOf);
    assert.deepEqual([alone?.msg, before?.msg, field?.msg], ["no room", "not kept: a.txt", "not kept"]);
    for (const line of [alone, before, field]) {
      const { type, message, stack, code } = (line?.err ?? {}) as Record<string, string | undefined>;
      assert.deepEqual([type, message, code], ["Refused", "no room", "REFUSED"]);
      assert.match(stack ?? "", /no room\n {4}at [\s\S]*caused by Error: disk is full/);
    }
    assert.equal(field?.file, "a.txt");
  });

  test("that a child adds precede those of the call", () => {
    const { log, text } = logOf();
    const child = log.of("shop", "*").child({ job: 3, step: "begin" }).child({ step: "end" });
    child.info("done");
    child.info({ job: 4 }, "done");
    assert.deepEqual(text().trim().split("\n").map(fieldsOf), [
      { level: "info", module: "shop", job: 3, step: "end", msg: "done" },
      { level: "info", module: "shop", job: 4, step: "end", msg: "done" },
    ]);
  });

  test("cannot replace fields that the log itself writes", () => {
    const { log, text } = logOf();
    log.of("shop", "*").info({ module: "http", level: "error", time: 1, host: "db.example", msg: 5 }, "text");
    assert.deepEqual(fieldsOf(text()), {
      level: "info",
      module: "shop",
      module_: "http",
      level_: "error",
      time_: 1,
      host_: "db.example",
      msg_: 5,
      msg: "text",
    });
  });

  test("that cannot be read do not fail the call, and the line says so", () => {
    const { log, text } = logOf();
    const bad = {
      get size() {
        throw new Error("no size");
      },
      toJSON() {
        throw new Error("no JSON");
      },
    };
    log.host.info(bad, "with a getter");
    log.host.info({ a: 1 }, "%j", bad);
    log.host.info("%j", 10n);
    const messages = text().trim().split("\n").map(fieldsOf);
    assert.deepEqual(
      messages.map(({ msg }) => msg),
      [
        "with a getter (a value cannot be read: no size)",
        "%j (a value cannot be read: no JSON)",
        "%j (a value cannot be read: Do not know how to serialize a BigInt)",
      ],
    );
  });

  test("have names that are masked, too, and an object that occurs often is written only some times", () => {
    const { log, text } = logOf();
    log.mask((one) => one.replaceAll("mht_secret", "mht_..."));
    log.host.info({ query: { mht_secret: "", plain: "" } }, "asked");
    assert.deepEqual(fieldsOf(text()).query, { "mht_...": "", plain: "" });
    let read = 0;
    let wide: object = {
      toJSON: () => {
        read += 1;
      },
    };
    for (let depth = 0; depth < 4; depth += 1)
      wide = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [at, wide]));
    log.host.info({ wide }, "wide");
    assert.ok(read < 30 ** 4, `${read} values were read`);
  });

  test("never prevent the line, are limited in size, and hide secrets", () => {
    const { log, text } = logOf();
    log.mask((given) => given.replaceAll("hunter2", "(secret)"));
    const circle: Record<string, unknown> = { name: "circle", password: "hunter2" };
    circle.self = circle;
    const failing = {
      get broken() {
        throw new Error("out of order");
      },
    };
    log.host.info({ circle, big: 10n, none: undefined, run: () => 1 }, "one");
    log.host.info({ failing }, "two");
    log.host.info({ items: Array.from({ length: 1000 }, () => "x".repeat(1000)) }, "three");
    log.host.info({ a: { b: { c: { d: { e: { f: 1 } } } } } }, "four");
    const [one, two, three, four] = text().trim().split("\n").map(fieldsOf);
    assert.deepEqual(one?.circle, { name: "circle", password: "(secret)", self: "[Circular]" });
    assert.deepEqual([one?.big, "none" in (one ?? {}), "run" in (one ?? {})], [10, false, false]);
    assert.deepEqual([two?.msg, two?.fields], ["two", "cannot be read: out of order"]);
    assert.match(String(three?.fields), /more characters are left out\)$/);
    assert.match(JSON.stringify(four?.a), /\[Object\]/);
  });

  test("are cut before they are masked, without showing part of a secret at the cut", () => {
    const { log, text } = logOf();
    let longest = 0;
    log.mask((given) => {
      longest = Math.max(longest, given.length);
      return given.replaceAll("hunter2hunter2", "(secret)");
    });
    const long = "hunter2hunter2".repeat(400_000);
    log.host.info(long);
    log.host.info({ long }, "as a field");
    log.host.info({ err: new Error(long) }, "as an error");
    assert.ok(longest < 100_000, `${longest}`);
    assert.doesNotMatch(text(), /hunter/);
    const [first, second] = text().trim().split("\n").map(fieldsOf);
    for (const cut of [first?.msg, second?.long]) {
      const [, shown, left] =
        /^((?:\(secret\))*[^.]*)\.\.\. \((\d+) more characters are left out\)$/.exec(`${cut}`) ?? [];
      assert.equal((shown?.length ?? 0) + Number(left), long.length);
    }
  });

  test("follow the message in the pretty form, and an error is shown with its stack", () => {
    const { log, text } = logOf({ format: "pretty" });
    log.of("shop", "*").info({ user: 7, name: "a\u001b[2J", tags: ["x"] }, "sold");
    log.host.error({ err: Object.assign(new Error("bad"), { code: "E1" }) }, "failed");
    const [first, second, third] = text().split("\n");
    assert.match(first ?? "", /^\S+ info {2}shop {2}sold {2}user=7 {2}name=a\\x1b\[2J {2}tags=\["x"\]$/);
    assert.match(second ?? "", /^\S+ error host {2}failed {2}Error: bad$/);
    assert.match(third ?? "", /^ {8}at /);
    assert.match(text(), / {2}code=E1\n$/);
  });
});
