import assert from "node:assert/strict";
import { test } from "node:test";
import { startHost } from "#test/support/host.ts";

test("a module that requests the stop of the server gets it after the open requests have ended", async () => {
  const responding = Promise.withResolvers<void>();
  const events: string[] = [];
  await using started = await startHost({
    config: { https_ports: [] },
    modules: {
      mod_http_end(module) {
        module.depends("http");
        module.hook("server-stopping", () => void events.push("stopping"));
        module.unload = () => void events.push("unloaded");
        module.provides("http", {
          route: {
            async "POST /"() {
              module.stop_server();
              await responding.promise;
              events.push("answered");
              return "bye";
            },
          },
        });
      },
    },
  });
  const { host } = started;
  void host.ended.then(() => events.push("ended"));
  const response = fetch(`http://127.0.0.1:${started.http}/end/`, { method: "POST" });
  while (host.state === "running") await new Promise(setImmediate);
  responding.resolve();
  assert.equal(await (await response).text(), "bye");
  await host.ended;
  assert.deepEqual(events, ["stopping", "answered", "unloaded", "ended"]);
  assert.equal(host.state, "stopped");
  await host.stop();
});
