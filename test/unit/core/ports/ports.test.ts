import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { configFrom } from "#core/config/index.ts";
import { Ports } from "#core/ports/ports.ts";
import type { Module, NetProvider, OwnedItem } from "#core/types.ts";
import type { ModhostError } from "#core/util/errors.ts";
import { freePort } from "#test/support/free_port.ts";

const loopback = { default_ports: [0], default_interfaces: ["127.0.0.1"] };

/** `single`: options of the type `port`, with their defaults. */
function portsOf(t: TestContext, config: Record<string, unknown> = {}, single: Record<string, number> = {}) {
  const read = configFrom(config, "/");
  for (const [name, value] of Object.entries(single))
    read.declare({ [name]: { type: "port", default: value, describe: "" } }, "test");
  const ports = new Ports(read);
  t.after(() => {
    ports.close();
    ports.destroy();
  });
  return ports;
}

function provider(item: Partial<NetProvider> & { name: string }, errors: string[] = []): OwnedItem<NetProvider> {
  const write = (_format: string, ...values: unknown[]) => void errors.push(values.join(" "));
  const log = { error: write, warn: write };
  return {
    item: { onconnect: (socket) => void socket.end("hello"), ...loopback, ...item },
    owner: { log } as unknown as Module,
  };
}

async function read(port: number, host = "127.0.0.1"): Promise<string> {
  const socket = connect(port, host);
  socket.setEncoding("utf8");
  let text = "";
  for await (const chunk of socket) text += chunk as string;
  return text;
}

async function blocked(t: TestContext): Promise<number> {
  const server: Server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as { port: number }).port;
}

describe("the ports of a service", () => {
  test("open with those of the host, with the provider's defaults, and connections go to the provider", async (t) => {
    const ports = portsOf(t);
    ports.add(provider({ name: "echo", scheme: "http" }));
    assert.deepEqual(ports.listening(), []);
    await ports.open();
    const [open] = ports.listening();
    assert.deepEqual({ ...open, port: 0 }, { service: "echo", scheme: "http", address: "127.0.0.1", port: 0 });
    assert.equal(await read(open?.port ?? 0), "hello");
  });

  test("are set by the options <name>_ports and <name>_interfaces, and an empty list opens none", async (t) => {
    const ports = portsOf(t, { echo_ports: [0, "0"], echo_interfaces: "127.0.0.1", mute_ports: [] });
    ports.add(provider({ name: "echo", default_interfaces: ["192.0.2.1"] }));
    ports.add(provider({ name: "mute" }));
    await ports.open();
    assert.deepEqual(
      ports.listening().map(({ service, address }) => `${service} ${address}`),
      ["echo 127.0.0.1", "echo 127.0.0.1"],
    );
    assert.throws(() => portsOf(t, { bad_ports: [70_000] }).add(provider({ name: "bad" })), {
      code: "OPTION_INVALID",
      message: /bad_ports/,
    });
  });

  test("are a single port if the option <name>_port is declared, and none for 0", async (t) => {
    const port = await freePort();
    const ports = portsOf(t, { echo_port: port, mute_port: 0 }, { echo_port: 1, mute_port: 1 });
    ports.add(provider({ name: "echo" }));
    ports.add(provider({ name: "mute" }));
    await ports.open();
    assert.deepEqual(
      ports.listening().map((open) => `${open.service} ${open.port}`),
      [`echo ${port}`],
    );
    assert.throws(() => portsOf(t, { bad_port: 70_000 }, { bad_port: 1 }).add(provider({ name: "bad" })), {
      code: "OPTION_INVALID",
      message: /bad_port .*a port from 1 to 65535, or 0 for none/,
    });
  });

  test("stay closed if the default port is taken, and a reload of the module tries it again", async (t) => {
    const blocker = createServer().listen(0, "127.0.0.1");
    await once(blocker, "listening");
    const { port } = blocker.address() as { port: number };
    const ports = portsOf(t, { other_ports: [0] }, { echo_port: port });
    const reasons: string[] = [];
    ports.add(provider({ name: "echo", failed: (reason) => void reasons.push(reason) }));
    ports.add(provider({ name: "other" }));
    await ports.open();
    assert.deepEqual(
      ports.listening().map(({ service }) => service),
      ["other"],
    );
    assert.match(reasons.join(), /taken by another program.*echo_port to another port.*MODHOST_ECHO_PORT=/);
    const [refused] = await Array.fromAsync(ports.refused());
    assert.deepEqual([refused?.error.code, refused?.isOptional], ["PORT_TAKEN", true]);
    const strict = portsOf(t, { echo_port: port }, { echo_port: 1 });
    strict.add(provider({ name: "echo" }));
    await assert.rejects(strict.open(), { code: "PORT_TAKEN", message: /echo_port to another port/ });
    blocker.close();
    await once(blocker, "close");
    ports.add(provider({ name: "echo" }));
    await ports.settle();
    assert.equal(await read(port), "hello");
  });

  test("are opened once even if they are listed twice", async (t) => {
    const port = await blocked(t);
    const ports = portsOf(t, { echo_ports: [port, port], echo_interfaces: "127.0.0.2" });
    ports.add(provider({ name: "echo" }));
    await ports.open();
    assert.deepEqual(
      ports.listening().map(({ address }) => address),
      ["127.0.0.2"],
    );
  });

  test("are the same on every address if the system chooses", async (t) => {
    const ports = portsOf(t);
    ports.add(provider({ name: "echo", default_interfaces: ["127.0.0.1", "127.0.0.2"] }));
    await ports.open();
    const [first, second] = ports.listening();
    assert.equal(first?.port, second?.port);
    assert.equal(second?.address, "127.0.0.2");
  });

  test('listen on IPv4 and IPv6 for "*"', async (t) => {
    const ports = portsOf(t);
    ports.add(provider({ name: "echo", default_interfaces: ["*"] }));
    await ports.open();
    const [open] = ports.listening();
    assert.match(open?.address ?? "", /^(::|0\.0\.0\.0)$/);
    assert.equal(await read(open?.port ?? 0), "hello");
  });

  test("open at once for a provider that is added later, and close with the last provider", async (t) => {
    const ports = portsOf(t);
    await ports.open();
    const late = provider({ name: "late" });
    ports.add(late);
    await ports.settle();
    const port = ports.listening()[0]?.port ?? 0;
    assert.equal(await read(port), "hello");
    ports.remove(late);
    assert.deepEqual(ports.listening(), []);
    await assert.rejects(read(port), { code: "ECONNREFUSED" });
  });

  test("pass from one provider to the next without a gap", async (t) => {
    const ports = portsOf(t);
    const old = provider({ name: "echo", onconnect: (socket) => void socket.end("old") });
    ports.add(old);
    await ports.open();
    const port = ports.listening()[0]?.port ?? 0;
    assert.equal(await read(port), "old");
    ports.add(provider({ name: "echo", onconnect: (socket) => void socket.end("new") }));
    ports.remove(old);
    await ports.settle();
    assert.equal(ports.listening()[0]?.port, port);
    assert.equal(await read(port), "new");
  });
});

describe("endpoints in addition to the options", () => {
  test("are opened with the ports, and closed with the provider", async (t) => {
    const ports = portsOf(t);
    const both = provider({ name: "echo", endpoints: [{ address: "127.0.0.1", port: 0 }] });
    ports.add(both);
    await ports.open();
    const [first, second] = ports.listening();
    assert.notEqual(first?.port, second?.port);
    for (const open of [first, second]) assert.equal(await read(open?.port ?? 0), "hello");
    ports.remove(both);
    await assert.rejects(read(second?.port ?? 0), { code: "ECONNREFUSED" });
  });

  test("cause a warning if they are taken, and the others are opened", async (t) => {
    const port = await blocked(t);
    const ports = portsOf(t);
    const warnings: string[] = [];
    const endpoints = [
      { address: "127.0.0.1", port },
      { address: "127.0.0.1", port: 0 },
    ];
    ports.add(provider({ name: "echo", default_ports: [], endpoints }, warnings));
    await ports.open();
    assert.equal(ports.listening().length, 1);
    assert.match(warnings.join(), new RegExp(`port ${port} of 127\\.0\\.0\\.1 .*EADDRINUSE`));
  });

  test("fail the start if they are taken and required", async (t) => {
    const port = await blocked(t);
    const ports = portsOf(t);
    const open: (number | undefined)[] = [];
    const endpoints = [
      { address: "127.0.0.1", port: 0, required: true, listening: (own: number | undefined) => open.push(own) },
      { address: "127.0.0.1", port, required: true },
    ];
    ports.add(provider({ name: "echo", default_ports: [], endpoints }));
    await assert.rejects(ports.open(), (error: ModhostError) => {
      assert.equal(error.code, "ENDPOINT_UNAVAILABLE");
      assert.equal(error.details.endpoint, endpoints[1]);
      return true;
    });
    assert.equal(open.length, 1);
    await assert.rejects(read(open[0] ?? 0), { code: "ECONNREFUSED" });
  });
});

describe("a port that cannot be opened", () => {
  test("is named with the option that sets it", async (t) => {
    const taken = await blocked(t);
    const ports = portsOf(t, { echo_ports: [taken] });
    ports.add(provider({ name: "echo" }));
    await assert.rejects(ports.open(), {
      code: "PORT_TAKEN",
      message: new RegExp(
        `Port ${taken} on 127\\.0\\.0\\.1 is taken.*echo_ports.*, for example MODHOST_ECHO_PORTS=\\d+$`,
      ),
    });
    assert.deepEqual(ports.listening(), []);
  });

  test("because another service of the host has it causes an error that says so", async (t) => {
    const ports = portsOf(t);
    ports.add(provider({ name: "one" }));
    await ports.open();
    const port = ports.listening()[0]?.port ?? 0;
    ports.add(provider({ name: "two", default_ports: [port] }));
    await assert.rejects(ports.settle(), { code: "PORT_UNAVAILABLE", message: /one_ports has it too.*two_ports/ });
  });

  test("on an address that this machine does not have is refused", async (t) => {
    const ports = portsOf(t);
    ports.add(provider({ name: "echo", default_interfaces: ["192.0.2.1"] }));
    await assert.rejects(ports.open(), {
      code: "PORT_UNAVAILABLE",
      message: /192\.0\.2\.1.*EADDRNOTAVAIL.*echo_interfaces/,
    });
  });

  test("is logged under its module if nobody waits for the provider", async (t) => {
    const ports = portsOf(t);
    await ports.open();
    const logged = Promise.withResolvers<unknown>();
    const taken = await blocked(t);
    const owner = { log: { error: (_: string, text: string) => logged.resolve(text) } } as unknown as Module;
    ports.add({ ...provider({ name: "echo", default_ports: [taken] }), owner });
    assert.match(String(await logged.promise), /is taken/);
  });
});

describe("a connection", () => {
  const accepted = async (t: TestContext, item: Partial<NetProvider>, errors: string[] = []) => {
    const sockets: Socket[] = [];
    const ports = portsOf(t);
    ports.add(provider({ name: "echo", onconnect: (socket) => void sockets.push(socket), ...item }, errors));
    await ports.open();
    const client = connect(ports.listening()[0]?.port ?? 0, "127.0.0.1");
    client.on("error", () => {});
    await once(client, "connect");
    return { ports, client, sockets };
  };

  test("stays open after the ports are closed, until it is cut", async (t) => {
    const { ports, client, sockets } = await accepted(t, {});
    while (sockets.length === 0) await new Promise(setImmediate);
    ports.close();
    assert.deepEqual(ports.listening(), []);
    sockets[0]?.write("still");
    const [text] = (await once(client, "data")) as [Buffer];
    assert.equal(text.toString(), "still");
    ports.destroy();
    await once(client, "close");
  });

  for (const half_open of [true, false]) {
    test(`${half_open ? "stays" : "does not stay"} open for writing when the peer has ended its side (half_open: ${half_open})`, async (t) => {
      const responded = Promise.withResolvers<boolean>();
      const { client } = await accepted(t, {
        half_open,
        onconnect: (socket) => {
          socket.on("end", () => setImmediate(() => responded.resolve(socket.writable)));
          socket.resume();
        },
      });
      client.end();
      assert.equal(await responded.promise, half_open);
      client.destroy();
    });
  }

  test("is dropped, and the error logged, if the provider throws", async (t) => {
    const errors: string[] = [];
    const { client } = await accepted(
      t,
      {
        onconnect: () => {
          throw new Error("cannot take it");
        },
      },
      errors,
    );
    client.resume();
    await once(client, "close");
    assert.match(errors[0] ?? "", /cannot take it/);
  });
});
