import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import type { NodeModule } from "modhost/node";
import type { Module } from "#core/types.ts";
import { noSharedStore, sharedStore } from "#test/support/engines/shared_store.ts";
import { eventually } from "#test/support/eventually.ts";
import { startHost } from "#test/support/host.ts";

/** A proxy in front of a server: connections wait until it is opened. */
async function gate(to: string) {
  const { hostname, port } = new URL(to);
  const sockets = new Set<Socket>();
  const opened = Promise.withResolvers<void>();
  const server = createServer((from) => {
    const behind = connect({ host: hostname, port: Number(port) });
    for (const socket of [from, behind]) {
      sockets.add(socket);
      socket.on("error", () => undefined).once("close", () => [from, behind].map((each) => each.destroy()));
    }
    void opened.promise.then(() => from.pipe(behind).pipe(from));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open: opened.resolve,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test("the server starts while a node opens slowly, and answers 503 below the node's paths until it is open", {
  skip: noSharedStore,
}, async () => {
  const { settings } = await sharedStore();
  await using store = await gate(settings.endpoint);
  await using host = await startHost({
    config: (folder) => ({
      https_ports: [],
      modules_enabled: ["http", "keeper", "other"],
      node_repo: join(folder, "repo"),
      node_offline: true,
      node_store: { ...settings, endpoint: store.endpoint },
      load_timeout: 10,
    }),
    modules: {
      keeper(module: Module) {
        module.depends("http");
        const node = module.depends<NodeModule>("node");
        module.provides("http", { route: { "GET /version": async () => (await node.version()).version } });
      },
      other(module: Module) {
        module.depends("http");
        module.provides("http", { route: { "GET /": () => "there" } });
      },
    },
  });
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${host.http}${path}`)).status;
  const node = host.host.modules().find(({ name }) => name === "node");
  assert.deepEqual([node?.status, node?.is_late], ["failed", true], node?.note);
  assert.match(node?.note ?? "", /repo does not open: opening takes a long time, and continues/);
  assert.deepEqual([await ask("/other/"), await ask("/keeper/version")], [200, 503]);
  store.open();
  await eventually("the node is there", async () => (await ask("/keeper/version")) === 200);
});
