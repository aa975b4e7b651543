/** Options of the configuration that an isolated module gets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { pluginHost } from "../module/support.ts";

const reader = `
export const isolated = true;
export const depends = ["http"];
export const options = {
  reader_key: { type: "string", secret: true, describe: "Its own secret." },
  reader_word: { type: "string", describe: "Of each host." },
};
export default function (module) {
  const names = ["reader_key", "reader_word", "other_key", "other_word", "acme_eab_key", "stop_timeout", "http_paths", "nobodys", "reader_more"];
  module.provides("http", {
    route: { GET: () => JSON.stringify(Object.fromEntries(names.map((name) => [name, module.get_option(name)]))) },
  });
}
`;
const other = `
export const options = {
  other_key: { type: "string", secret: true, describe: "A secret." },
  other_word: { type: "string", describe: "A word." },
};
export default () => {};
`;

test("a worker has the options of its own module, but none of other modules and no secrets of the host", async (t) => {
  const running = await pluginHost(
    t,
    { "mod_reader.js": reader, "mod_other.js": other },
    {
      modules_enabled: ["http", "other", "reader"],
      reader_key: "mine",
      reader_word: "server",
      other_key: "theirs",
      other_word: "theirs",
      acme_eab_key: "hosts",
      stop_timeout: 7,
      http_paths: { reader: "/r" },
      nobodys: "of a module that is not loaded",
      reader_more: "known to it alone",
      hosts: { "a.test": { reader_word: "host", other_word: "theirs" } },
    },
  );
  const { body } = await running.inject({ path: "/r", headers: { Host: "a.test" } });
  assert.deepEqual(JSON.parse(body), {
    reader_key: "mine",
    reader_word: "host",
    stop_timeout: 7,
    http_paths: { reader: "/r" },
    reader_more: "known to it alone",
  });
});

test("a worker does not see variables that set options", async (t) => {
  const file = `
export const isolated = true;
export const depends = ["http"];
export default function (module) {
  module.provides("http", { route: { GET: () => JSON.stringify([process.env.MODHOST_OTHER_KEY, process.env.OTHER]) } });
}`;
  Object.assign(process.env, { MODHOST_OTHER_KEY: "secret", OTHER: "seen" });
  t.after(() => {
    delete process.env.MODHOST_OTHER_KEY;
    delete process.env.OTHER;
  });
  const running = await pluginHost(t, { "mod_seer.js": file }, { modules_enabled: ["http", "seer"] });
  assert.equal((await running.inject({ path: "/seer" })).body, '[null,"seen"]');
});

test("process.abort and process.kill of an isolated module end its worker alone", async (t) => {
  const file = (call: string) => `
export const isolated = true;
export const depends = ["http"];
export default (module) => module.provides("http", { route: { GET: () => "here", "GET /end": () => ${call} } });`;
  const running = await pluginHost(
    t,
    { "mod_aborts.js": file("process.abort()"), "mod_kills.js": file("process.kill(process.pid, 'SIGKILL')") },
    { modules_enabled: ["http", "aborts", "kills"], log_level: "error" },
  );
  for (const name of ["aborts", "kills"]) {
    assert.equal((await running.inject({ path: `/${name}/end` })).status, 503);
    let status = 503;
    await eventually("it is started again", async () => {
      ({ status } = await running.inject({ path: `/${name}` }));
      return status !== 503;
    });
    assert.equal(status, 200);
  }
});
