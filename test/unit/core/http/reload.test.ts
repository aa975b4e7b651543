import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { test } from "node:test";
import { createTestHost } from "#core/testing/index.ts";
import { eventually } from "#test/support/eventually.ts";

/** One request on a kept-alive connection: its status, or the error's code. */
function ask(port: number, agent: Agent, method: string, body: string): Promise<number | string> {
  return new Promise((resolve) => {
    const sent = request({ port, host: "127.0.0.1", path: "/echo/", method, agent }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    });
    sent.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    sent.end(body);
  });
}

test("no request on kept-alive connections fails while a module, and the HTTP module itself, are reloaded", async () => {
  await using started = await createTestHost({
    config: { modules_enabled: ["http"], unload_grace: 2 },
    modules: [
      {
        name: "echo",
        load(module) {
          module.depends("http");
          module.provides("http", { route: { "GET /": () => "x", "POST /": (event) => event.request.body } });
        },
      },
    ],
  });
  const port = Number(new URL(started.url("/")).port);
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const outcomes: Record<string, number> = {};
  let stop = false;
  const clients = Array.from({ length: 8 }, async (_, index) => {
    while (!stop) {
      const outcome = await ask(
        port,
        agent,
        index % 2 === 0 ? "GET" : "POST",
        index % 2 === 0 ? "" : "y".repeat(20_000),
      );
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
  });
  for (let round = 0; round < 5; round += 1) {
    await started.host.reload("echo");
    await started.host.reload("http");
    const before = outcomes[200] ?? 0;
    await eventually("20 more are answered", () => (outcomes[200] ?? 0) >= before + 20, { every: 2 });
  }
  stop = true;
  await Promise.all(clients);
  agent.destroy();
  assert.deepEqual(Object.keys(outcomes), ["200"], JSON.stringify(outcomes));
});
