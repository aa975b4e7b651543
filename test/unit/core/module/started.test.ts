/** Servers, threads, child processes and timers that a module starts by itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { pluginHost } from "./support.ts";

const source = `import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { Worker } from "node:worker_threads";
export default function own(module) {
  module.load = async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const thread = new Worker("setInterval(() => undefined, 1000)", { eval: true });
    const child = spawn(process.execPath, ["-e", "setInterval(() => undefined, 1000)"], { stdio: "ignore" });
    globalThis.endsOfOwn.push(() => server.close(), () => thread.terminate(), () => child.kill("SIGKILL"));
    module.on_release("child", () => child.kill("SIGKILL"));
  };
}`;

test("resources that a module has started are counted, and those that it leaves running after a reload are named", async (t) => {
  const ends: (() => unknown)[] = [];
  Object.assign(globalThis, { endsOfOwn: ends });
  t.after(() => Promise.all(ends.map((end) => end())));
  const { host, log } = await pluginHost(t, { "mod_own.js": source });
  const holds = () => host.modules().find(({ name }) => name === "own")?.holds ?? {};
  const { server, thread, "child process": child } = holds();
  assert.deepEqual([server, thread, child], [1, 1, 1]);
  await host.reload("own");
  await eventually("the log names what is left", () => /left a server on port \d+/.test(log().join("")));
  assert.match(log().join(""), /own.*left a server on port \d+ of 127\.0\.0\.1, the thread \d+ running: stop it in/);
  const now = holds();
  assert.deepEqual([now.server, now["server of a previous instance"], now["thread of a previous instance"]], [1, 1, 1]);
  assert.equal(now["child process of a previous instance"], undefined);
});

const timers = `import { setTimeout as sleep } from "node:timers/promises";
import { setInterval as every } from "node:timers";
globalThis.endsOfTimers.push(setInterval(() => undefined, 70_000));
export default function timed(module) {
  const ended = every(() => undefined, 80_000);
  module.on_release("interval", () => clearInterval(ended));
  module.add_timer(90, () => undefined);
  setTimeout(() => undefined, 85_000).unref();
  const endless = async () => {
    while (globalThis.isEndless) await sleep(50);
  };
  void endless();
  const again = () => globalThis.isEndless && setTimeout(again, 60);
  again();
}`;

test("intervals and endless timeouts that a module leaves running are named with the line that set them", async (t) => {
  const ends: NodeJS.Timeout[] = [];
  Object.assign(globalThis, { endsOfTimers: ends, isEndless: true });
  t.after(() => {
    for (const timer of ends) clearInterval(timer);
    Object.assign(globalThis, { isEndless: false });
  });
  const { host, log } = await pluginHost(t, { "mod_timed.js": timers });
  const holds = () => host.modules().find(({ name }) => name === "timed")?.holds ?? {};
  // One timer is that of `module.add_timer`, which the module does not have to end.
  assert.deepEqual([holds().timer, ends.length], [3, 1]);
  await host.reload("timed");
  const text = () => log().join("");
  await eventually("the log names the interval of the file", () => /left an interval of 70000 ms/.test(text()));
  assert.match(text(), /timed.*left an interval of 70000 ms set in \S+mod_timed\.js:3 running/);
  await eventually("the log names the endless timeouts", () => /left a timeout of \d+ ms/.test(text()));
  assert.match(text(), /a timeout of (50|60) ms set in \S+mod_timed\.js:(10|14)/);
  assert.doesNotMatch(text(), /80000|85000|90/);
  assert.ok((holds()["timer of a previous instance"] ?? 0) >= 2);
  Object.assign(globalThis, { isEndless: false });
  await host.unload("timed");
});
