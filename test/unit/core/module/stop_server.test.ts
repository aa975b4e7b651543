import assert from "node:assert/strict";
import { test } from "node:test";
import { startHost } from "#test/support/host.ts";

test("a module that asks for the end gets it after the requests in flight have been answered", async () => {
  const answering = Promise.withResolvers<void>();
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
              await answering.promise;
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
  const answer = fetch(`http://127.0.0.1:${started.http}/end/`, { method: "POST" });
  while (host.state === "running") await new Promise(setImmediate);
  answering.resolve();
  assert.equal(await (await answer).text(), "bye");
  await host.ended;
  assert.deepEqual(events, ["stopping", "answered", "unloaded", "ended"]);
  assert.equal(host.state, "stopped");
  await host.stop();
});
