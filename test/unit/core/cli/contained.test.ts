/** What a module throws that nobody catches, as the process of `modhost run` takes it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Program } from "./spawned.ts";

const hello = `export default (module) => module.provides("http", { route: { GET: () => "hello" } });`;
const astray = `export default (module) => {
  const crash = () => setImmediate(() => { throw new Error("crashed"); }) && "soon";
  module.provides("http", { route: { GET: () => "here", "GET /throw": crash } });
};`;

test("an exception that nobody catches takes out the module whose code threw it; the others are served on", async () => {
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
