/** Facts that every node reports about itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogEvent } from "modhost/node";
import { memoryNode } from "./support.ts";

test("the log is followed from the configured level on, with events of additional sources", async (t) => {
  const { log, lowLevel } = await memoryNode(t);
  assert.deepEqual(await log.level("pin", "info"), { message: "Changed log level of 'pin' to 'info'\n" });
  assert.ok((await log.ls()).includes("pin"));
  const leaving = new AbortController();
  let deaf = false;
  const events = log
    .tail({
      signal: leaving.signal,
      also(report) {
        report({ event: "more", system: "commands", time: "now" });
        return () => {
          deaf = true;
        };
      },
    })
    [Symbol.asyncIterator]();
  assert.deepEqual((await events.next()).value, { event: "more", system: "commands", time: "now" });
  lowLevel.log.write("pin", "debug", "too quiet");
  lowLevel.log.write("pin", "info", "loud enough");
  const { time, ...rest } = (await events.next()).value;
  assert.deepEqual(rest, { event: "loud enough", level: "info", system: "pin" });
  assert.equal(Number.isNaN(Date.parse(time)), false);
  const waiting = events.next();
  leaving.abort(new Error("enough"));
  await assert.rejects(waiting, { message: "enough" });
  assert.equal(deaf, true);
  await assert.rejects(log.level("none", "info"), { message: "Error: No such logger" });
});

test("the version, the packages and the system are reported", async (t) => {
  const { version, update, diag, lowLevel } = await memoryNode(t);
  const { version: level, repo, system } = await version();
  assert.deepEqual([level, repo], ["0.9.0", lowLevel.repo.version]);
  const [first, ...others] = await Array.fromAsync(version.deps());
  assert.equal(first?.path, "modhost");
  assert.ok(others.some(({ path }) => path === "multiformats"));
  assert.ok((await update()).startsWith(`modhost ${first?.version}: API 0.9.0`));
  const { runtime, net, environment } = await diag.sys();
  assert.equal(`${runtime.arch}/${runtime.os}`, system);
  assert.deepEqual([net.online, environment.IPFS_PATH], [false, lowLevel.repo.path]);
});

test("CIDs are converted to other forms, and an invalid CID gives a result with an error", async (t) => {
  const { cid, block } = await memoryNode(t);
  const given = await block.put("x", { format: "v0" });
  const [first, second] = await Array.fromAsync(cid.base32([given, "none"]));
  assert.deepEqual(first, { cidStr: String(given), formatted: given.toV1().toString(), errorMsg: "" });
  assert.deepEqual([second?.cidStr, second?.formatted], ["none", ""]);
  assert.notEqual(second?.errorMsg, "");
  const [shown] = await Array.fromAsync(cid.format(given, { f: "%v-%c-%h" }));
  assert.equal(shown?.formatted, "cidv0-protobuf-sha2-256");
  await assert.rejects(Array.fromAsync(cid.format(given, { v: "7" })), { message: "invalid cid version: 7" });
  const has = (list: readonly { readonly name: string }[], name: string) => list.some((each) => each.name === name);
  assert.ok(has(await cid.bases(), "base36") && has(await cid.codecs(), "raw") && has(await cid.hashes(), "sha2-256"));
});

test("a node without a network mounts nothing, and is closed after stop", async (t) => {
  const node = await memoryNode(t);
  await assert.rejects(node.mount(), { name: "NodeError", code: "OFFLINE_COMMAND" });
  await node.stop();
  await assert.rejects(node.block.put("x"), { name: "NodeError" });
});

test("the log is followed from a level on, and events of commands count as info", async (t) => {
  const { log, lowLevel } = await memoryNode(t);
  await log.level("all", "debug");
  const heard = async (level: string | undefined, count: number) => {
    const leaving = new AbortController();
    const also = (report: (event: LogEvent) => void) => {
      report({ event: "a command", system: "commands", time: "" });
      return () => {};
    };
    const events: string[] = [];
    const following = (async () => {
      for await (const { event } of log.tail({ signal: leaving.signal, also, level })) {
        if (events.push(event) === count) break;
      }
    })();
    for (const level of ["debug", "info", "error"] as const) lowLevel.log.write("core", level, level);
    await following;
    leaving.abort();
    return events;
  };
  assert.deepEqual(await heard(undefined, 4), ["a command", "debug", "info", "error"]);
  assert.deepEqual(await heard("info", 3), ["a command", "info", "error"]);
  assert.deepEqual(await heard("WARN", 1), ["error"]);
  assert.throws(() => log.tail({ level: "loud" }), { message: 'setting log level loud: unrecognized level: "loud"' });
});
