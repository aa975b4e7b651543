import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { LineSink } from "#core/util/line_sink.ts";

const folder = mkdtempSync(join(tmpdir(), "modhost-sink-"));
after(() => rm(folder, { recursive: true }));

function pipe(name: string) {
  const path = join(folder, name);
  execFileSync("mkfifo", [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const read = () => {
    const room = Buffer.alloc(1024 * 1024);
    try {
      return room.toString("utf8", 0, readSync(fd, room));
    } catch {
      return "";
    }
  };
  return { path, read, [Symbol.dispose]: () => closeSync(fd) };
}

const line = (at: number) => `${String(at).padStart(7, "0")} ${"x".repeat(991)}\n`;

test("lines are written to a file in order, also by background threads", async () => {
  for (const isAsync of [false, true]) {
    const path = join(folder, `new/${isAsync}`);
    const sink = LineSink.file(path, { isAsync });
    for (let at = 0; at < 100; at += 1) sink.write(line(at));
    await sink.close();
    sink.write("after the end\n");
    assert.equal(readFileSync(path, "utf8"), Array.from({ length: 100 }, (_, at) => line(at)).join(""));
  }
});

test("a pipe that nobody reads buffers up to a limit, and lost lines are counted when it is read", async () => {
  using unread = pipe("unread");
  const reported: string[] = [];
  const sink = LineSink.file(unread.path, {
    failed: ({ message }) => reported.push(message),
    recovered: (lost, { message }) => reported.push(`${lost}: ${message}`),
  });
  for (let at = 0; at < 6000; at += 1) sink.write(line(at));
  assert.equal(reported.length, 1, "once");
  let text = "";
  while (reported.length < 2) {
    text += unread.read();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  text += unread.read();
  const lines = text.split("\n").slice(0, -1);
  assert.deepEqual(
    lines,
    Array.from({ length: lines.length }, (_, at) => line(at).trimEnd()),
    "whole lines, in order",
  );
  assert.equal(reported[1], `${6000 - lines.length}: ${reported[0]}`);
  sink.end();
});

test("close does not wait for a reader that reads nothing", async () => {
  using unread = pipe("hung");
  const sink = LineSink.file(unread.path);
  for (let at = 0; at < 1000; at += 1) sink.write(line(at));
  await sink.close();
});

test("a full disk only loses lines", () => {
  const reported: string[] = [];
  const sink = LineSink.file("/dev/full", { failed: (error) => reported.push(error.message) });
  for (let at = 0; at < 10; at += 1) sink.write(line(at));
  assert.deepEqual(reported, ["ENOSPC: no space left on device, write"]);
  sink.end();
});

test("a file that was moved away is opened again, and no line is lost or cut", async () => {
  for (const isAsync of [false, true]) {
    const path = join(folder, `moved-${isAsync}`);
    const sink = LineSink.file(path, { isAsync });
    for (let at = 0; at < 500; at += 1) {
      if (at % 100 === 50) {
        renameSync(path, `${path}.${at}`);
        sink.reopen();
      }
      sink.write(line(at));
      if (at % 30 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await sink.close();
    const files = [50, 150, 250, 350, 450].map((at) => `${path}.${at}`);
    const texts = [...files, path].map((file) => readFileSync(file, "utf8"));
    assert.equal(texts.join(""), Array.from({ length: 500 }, (_, at) => line(at)).join(""));
    assert.ok(texts.every((text) => text === "" || text.endsWith("\n")));
    assert.ok(texts.at(-1) !== "");
  }
});

test("a file that cannot be opened again stays in use", () => {
  const path = join(folder, "kept/log");
  const sink = LineSink.file(path);
  renameSync(join(folder, "kept"), join(folder, "away"));
  writeFileSync(join(folder, "kept"), "");
  assert.throws(() => sink.reopen());
  sink.write(line(1));
  sink.end();
  assert.equal(readFileSync(join(folder, "away/log"), "utf8"), line(1));
});
