/**
 * A watched config file: it is applied once it has changed and no write follows, and read again if
 * it was incomplete.
 */
import assert from "node:assert/strict";
import fs from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Change, Module } from "#core/types.ts";
import { eventually } from "#test/support/eventually.ts";
import { type Reconfigured, reconfigured } from "./reconfigured.ts";

const module = {
  name: "http_shown",
  options: { shown: { type: "string" as const, describe: "For a test." } },
  load(module: Module) {
    module.depends("http");
    const shown = module.get_option_string("shown");
    module.provides("http", { route: { "GET /": () => shown ?? "nothing" } });
  },
};

const shows = (server: Reconfigured, text: string) =>
  eventually(`${text} is shown`, async () => (await server.get("/shown")) === text);
const path = (server: Reconfigured) => join(server.folder, "modhost.config.json");

describe("a watched config file", { concurrency: 3, timeout: 300_000 }, () => {
  test("is applied when it is written, and when another file replaces it", async () => {
    const changes: Change[] = [];
    const hearing = {
      name: "hearing",
      load: (module: Module) => module.hook("server-changed", (change: Change) => void changes.push(change)),
    };
    await using server = await reconfigured({ config_watch: true, shown: "one" }, [module, hearing]);
    await server.write({ config_watch: true, shown: "two" });
    await shows(server, "two");
    const values = { modules_enabled: ["http"], http_ports: [0], https_ports: [], http_interfaces: ["127.0.0.1"] };
    const fresh = join(server.folder, "fresh");
    await writeFile(fresh, JSON.stringify({ ...values, config_watch: true, shown: "three" }));
    await rename(fresh, path(server));
    await shows(server, "three");
    await eventually("two changes are told", () => changes.length >= 2);
    assert.deepEqual(new Set(changes.map(({ by }) => by)), new Set(["file watch"]));
    assert.deepEqual(
      changes[0]?.plan?.options.map(({ name }) => name),
      ["shown"],
    );
  });

  test("is read again while it is incomplete or empty, and nothing changes until it is complete", async () => {
    await using server = await reconfigured({ config_watch: true, shown: "one" }, [module]);
    await writeFile(path(server), "");
    await sleep(600);
    await writeFile(path(server), '{ "modules_enabled": [');
    await sleep(600);
    assert.equal(await server.get("/shown"), "one");
    assert.doesNotMatch(server.log(), /Cannot apply the changed configuration/);
    await server.write({ config_watch: true, shown: "whole" });
    await shows(server, "whole");
  });

  test("changes nothing if it is wrong, which is logged once", async () => {
    await using server = await reconfigured({ config_watch: true, shown: "one" }, [module]);
    await server.write({ config_watch: true, shown: 1 });
    await eventually("the log says so", () => server.log().includes("Cannot apply the changed configuration"));
    assert.equal(await server.get("/shown"), "one");
    assert.equal(server.log().match(/Cannot apply the changed configuration/g)?.length, 1);
  });

  test("can turn off the watch", async () => {
    await using server = await reconfigured({ config_watch: true, shown: "one" }, [module]);
    await server.write({ config_watch: false, shown: "two" });
    await shows(server, "two");
    await server.write({ config_watch: false, shown: "three" });
    await sleep(700);
    assert.equal(await server.get("/shown"), "two");
    await server.host.apply();
    assert.equal(await server.get("/shown"), "three");
  });

  test("is not watched by a host that was stopped while its modules became ready", async (t) => {
    const watched = t.mock.method(fs, "watch");
    syncBuiltinESMExports();
    t.after(() => syncBuiltinESMExports());
    const begun = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const slow = {
      name: "slow",
      load(module: Module) {
        module.ready = () => {
          begun.resolve();
          return gate.promise;
        };
      },
    };
    const starting = reconfigured({ config_watch: true, stop_timeout: 0.1 }, [slow], {}, (host) => {
      void begun.promise.then(() => host.stop()).then(() => gate.resolve());
    });
    await using server = await starting;
    await server.host.ended;
    const ours = watched.mock.calls.filter(({ arguments: [path] }) => path === server.folder);
    assert.deepEqual(ours, []);
  });
});
