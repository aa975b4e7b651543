import assert from "node:assert/strict";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { assertNothingLeft, createTestHost, handlesNow, type TestHost } from "#core/testing/index.ts";
import type { Module } from "#core/types.ts";
import { folderOf } from "#test/unit/core/module/support.ts";

type Load = (module: Module) => unknown;

/** Starts a host that knows a module by name, which is not loaded. */
async function knowing(t: TestContext, load: Load, config: Record<string, unknown> = {}): Promise<TestHost> {
  let isAwake = false;
  const sleeper = { name: "leaky", load: (module: Module) => (isAwake ? load(module) : undefined) };
  const host = await createTestHost({ modules: [sleeper], config });
  t.after(() => host.stop());
  await host.unload("leaky");
  isAwake = true;
  return host;
}

async function unloaded(t: TestContext, load: Load): Promise<TestHost> {
  const host = await knowing(t, load);
  await host.load("leaky");
  await host.unload("leaky");
  return host;
}

async function listening() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, port: (server.address() as { port: number }).port };
}

test("nothing is left of a module that adds everything through its module object", async (t) => {
  const connections: Socket[] = [];
  const load = (module: Module) => {
    module.depends("http");
    module.provides("http", { route: { "GET /": "x" } });
    module.provides("net", {
      name: "leaky",
      default_ports: [0],
      default_interfaces: ["127.0.0.1"],
      onconnect: (socket) => void connections.push(socket.on("error", () => undefined)),
    });
    module.hook("ping", () => "pong");
    module.handle_items(
      "thing",
      () => {},
      () => {},
    );
    module.add_item("thing", {});
    module.add_timer(1000, () => {});
    module.shared("table");
    const interval = setInterval(() => {}, 1000);
    module.on_release("interval", () => clearInterval(interval));
  };
  const host = await knowing(t, load, { modules_enabled: ["http"], unload_grace: 0.1 });
  const since = handlesNow(host.host);
  await host.load("leaky");
  await assert.rejects(assertNothingLeft(host, "leaky"), ({ message }: Error) => {
    const parts = [
      /is loaded: unload it first/,
      /hook ping/,
      /item thing/,
      /receiver of thing/,
      /, timer/,
      /shared table \/\*\/leaky\/table/,
      /service leaky/,
      /route GET \/leaky\//,
      /2 Timeout/,
    ];
    for (const part of parts) assert.match(message, part);
    return true;
  });
  assert.equal(await (await host.fetch("/leaky/")).text(), "x");
  const port = host.host.listening().find(({ service }) => service === "leaky")?.port ?? 0;
  const client = connect(port, "127.0.0.1").on("error", () => undefined);
  while (connections.length === 0) await new Promise(setImmediate);
  const closed = once(client, "close");

  await host.reload("leaky");
  assert.equal(connections[0]?.destroyed, false);
  await host.unload("leaky");
  await closed;
  await assertNothingLeft(host, "leaky");
  await assertNothingLeft(host.host, "mod_leaky", { since });
});

type Left = Error & { readonly actual: readonly unknown[] };

async function leftOf(host: TestHost): Promise<Left> {
  const { promise, resolve } = Promise.withResolvers<Left>();
  await assert.rejects(assertNothingLeft(host, "leaky", { within: 0.05 }), (error: Left) => {
    resolve(error);
    return true;
  });
  return promise;
}

/**
 * The host itself may still be writing lines about the unload. The test sets no timer to wait for
 * that, because the timer would be found, too.
 */
async function onlyLeftOf(host: TestHost, count = 1): Promise<string> {
  let left = await leftOf(host);
  for (let tries = 0; tries < 500 && left.actual.length !== count; tries += 1) left = await leftOf(host);
  return left.message;
}

describe("the error names what a module leaves behind:", () => {
  const leaves = (name: string, expected: RegExp, leak: (t: TestContext) => unknown) =>
    test(name, async (t) => {
      const host = await unloaded(t, () => leak(t));
      assert.match(await onlyLeftOf(host), expected);
    });

  leaves("an interval", /behind: an interval of 1000 ms set in \S+nothing_left\.test\.ts:\d+, 1 Timeout$/, (t) => {
    const interval = setInterval(() => {}, 1000);
    t.after(() => clearInterval(interval));
  });

  leaves(
    "a server that it opened by hand",
    /behind: a server on port \d+ of 127\.0\.0\.1, 1 TCPServerWrap$/,
    async (t) => {
      const { server } = await listening();
      t.after(() => server.close());
    },
  );

  leaves("an open file", /behind: open file .*\/data\.txt$/, async (t) => {
    const file = await open(join(await folderOf(t, { "data.txt": "x" }), "data.txt"));
    t.after(() => file.close());
  });

  leaves("a listener of the process", /behind: listener of process warning$/, (t) => {
    const listener = () => undefined;
    process.on("warning", listener);
    t.after(() => process.off("warning", listener));
  });

  test("a socket", async (t) => {
    const { server, port } = await listening();
    server.on("connection", (socket) => socket.unref());
    t.after(() => server.close());
    const host = await unloaded(t, async () => {
      const socket = connect(port, "127.0.0.1");
      t.after(() => socket.destroy());
      await once(socket, "connect");
    });
    assert.match(await onlyLeftOf(host), /behind: 1 TCPSocketWrap$/);
  });

  test("steps of its unload that failed, until it is loaded again", async (t) => {
    let isClumsy = true;
    const host = await unloaded(t, (module) => {
      if (!isClumsy) return;
      module.on_release("database", () => Promise.reject(new Error("still busy")));
      module.unload = () => {
        throw new Error("no");
      };
    });
    assert.match(await onlyLeftOf(host, 2), /running module\.unload \(no\), undoing database \(still busy\)$/);
    isClumsy = false;
    await host.load("leaky");
    await host.unload("leaky");
    await assertNothingLeft(host, "leaky");
  });
});

test("the check waits for resources that take time to close", async (t) => {
  const host = await unloaded(t, (module) => {
    const interval = setInterval(() => {}, 1000);
    module.unload = () => {
      setTimeout(() => clearInterval(interval), 30).unref();
    };
  });
  await assertNothingLeft(host, "leaky");
});

test("ports and connections of the host do not count for the module", async (t) => {
  const host = await knowing(t, (module) => {
    module.depends("http");
    module.provides("http", { route: { "GET /": "x" } });
  });
  await host.load("leaky");
  assert.equal(await (await host.fetch("/leaky/")).text(), "x");
  await host.unload("leaky");
  assert.equal(host.host.listening().length, 1);
  await assertNothingLeft(host, "leaky");
});

test("a module that was never loaded is an error of the test", async (t) => {
  const host = await unloaded(t, () => undefined);
  await assertNothingLeft(host, "leaky");
  await assert.rejects(assertNothingLeft(host, "leeky"), {
    code: "MODULE_UNKNOWN",
    message: /leeky has never been loaded here\. Known modules: .*leaky/,
  });
});
