/** Exceptions of modules that nobody catches: their effect on the process of `modhost run`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Program } from "./spawned.ts";

const hello = `export default (module) => module.provides("http", { route: { GET: () => "hello" } });`;
const astray = `export default (module) => {
  module.unload = () => { module.log.info("unloaded in order"); return globalThis.hanging; };
  const crash = () => setImmediate(() => { throw new Error("crashed"); }) && "soon";
  const hang = () => { globalThis.hanging = new Promise(() => {}); return crash(); };
  module.provides("http", { route: { GET: () => "here", "GET /throw": crash, "GET /hang": hang } });
};`;

const lines = (stderr: string) =>
  stderr
    .split("\n")
    .flatMap((line): { module?: string; level: string; msg: string }[] =>
      line.startsWith("{") ? [JSON.parse(line)] : [],
    );

test("an uncaught exception quarantines the module whose code threw it, and the others are still served", async () => {
  await using program = await Program.in({ "mod_astray.js": astray, "mod_hello.ts": hello });
  const variables = { MODHOST_QUARANTINE_PAUSE: "600" };
  const { started, kill, ended } = await program.serve(["mod_astray.js", "mod_hello.ts"], variables);
  const urlOf = (app: string) => started.apps.find(({ name }) => name === app)?.urls[0] ?? "";
  const url = urlOf("astray");
  assert.equal(await (await fetch(`${url}/throw`)).text(), "soon");
  let status = 0;
  for (let tries = 0; tries < 600 && status !== 503; tries += 1) {
    if (tries > 0) await delay(50);
    const response = await fetch(url);
    status = response.status;
    if (status === 503) assert.ok(Number(response.headers.get("retry-after")) > 0);
  }
  assert.equal(status, 503);
  assert.equal(await (await fetch(urlOf("hello"))).text(), "hello");
  kill("SIGTERM");
  assert.equal((await ended).code, 0);
});

for (const [path, how] of [
  ["/throw", "in order"],
  ["/hang", "within stop_timeout"],
]) {
  test(`if quarantine is off, an uncaught exception is logged, the server stops ${how}, and the exit code is 1`, async () => {
    await using program = await Program.in({ "mod_astray.js": astray });
    const variables = { MODHOST_STOP_TIMEOUT: "0.3", MODHOST_QUARANTINE_FAILURES: "0" };
    const { started, ended } = await program.serve(["mod_astray.js"], variables);
    const url = started.apps.find(({ name }) => name === "astray")?.urls[0];
    assert.equal(await (await fetch(url + (path ?? ""))).text(), "soon");
    const { code, stderr } = await ended;
    assert.equal(code, 1);
    const said = lines(stderr).filter((line) => line.module === "astray" && line.level !== "warn");
    assert.match(said[0]?.msg ?? "", /not awaited: crashed \(mod_astray\.js:\d+\)$/);
    assert.ok(said.some(({ msg }) => msg === "unloaded in order"));
  });
}
