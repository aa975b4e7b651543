import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { Peers } from "../../../../modules/mod_http_admin/peer.ts";

/** Opens connections to a server, and returns both ends. */
async function connected(host: string, count: number): Promise<{ accepted: Socket[]; close(): void }> {
  const accepted: Socket[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    if (accepted.push(socket.on("error", () => undefined)) === count) resolve();
  }).listen(0, host);
  await new Promise((go) => server.once("listening", go));
  const { port } = server.address() as { port: number };
  const clients = Array.from({ length: count }, () => connect(port, host).on("error", () => undefined));
  await promise;
  const close = () => {
    for (const socket of [...clients, ...accepted]) socket.destroy();
    server.close();
  };
  return { accepted, close };
}

const isLinux = process.platform === "linux";

for (const host of ["127.0.0.1", "::1"]) {
  test(`the user of a connection is found at ${host}, with few reads for many lookups at once`, {
    skip: !isLinux,
  }, async (t) => {
    const { accepted, close } = await connected(host, 100);
    t.after(close);
    let readings = 0;
    const readTable = (table: string) => {
      readings += 1;
      return readFile(table, "latin1").catch(() => "");
    };
    const peers = new Peers({ processes: () => [], readTable });
    const found = await Promise.all(accepted.map((socket) => peers.behind(socket)));
    assert.deepEqual(new Set(found.map((peer) => peer?.user)), new Set([process.getuid?.()]));
    assert.equal(readings, 2, "both tables are read once");
    assert.equal((await peers.behind(accepted[0] as Socket))?.user, process.getuid?.());
    assert.equal(readings, 2, "the user of a connection is stored");
  });
}

test("a connection of the server's own processes is distinguished from one of another process", {
  skip: !isLinux,
}, async (t) => {
  const { accepted, close } = await connected("127.0.0.1", 2);
  t.after(close);
  const isServer = async (...processes: number[]) =>
    (await new Peers({ processes: () => processes }).behind(accepted[0] as Socket))?.isServer;
  assert.equal(await isServer(process.pid), true);
  assert.equal(await isServer(process.ppid), false);
  assert.equal(await isServer(process.ppid, process.pid), true, "a connection of any of the processes counts");
  assert.equal(await isServer(2 ** 22 + 1), false, "a process that has ended has no connections");
});

test("the server's own sockets are read before the tables, so a socket that closes meanwhile still counts as its own", async (t) => {
  const { accepted, close } = await connected("127.0.0.1", 1);
  t.after(close);
  const order: string[] = [];
  const peers = new Peers({
    processes: () => [1],
    readTable: async () => {
      order.push("table");
      return "";
    },
    socketsOf: async () => {
      await new Promise(setImmediate);
      order.push("sockets");
      return [];
    },
  });
  assert.equal(await peers.behind(accepted[0] as Socket), undefined);
  assert.deepEqual(order, ["sockets", "table", "table"]);
});

test("a lookup during a read of the tables uses the next read", async (t) => {
  const { accepted, close } = await connected("127.0.0.1", 2);
  t.after(close);
  const [first, second] = accepted as [Socket, Socket];
  const waiting: ((text: string) => void)[] = [];
  const readTable = () => new Promise<string>((resolve) => void waiting.push(resolve));
  const peers = new Peers({ processes: () => [], readTable });
  const before = peers.behind(first);
  await new Promise(setImmediate);
  assert.equal(waiting.length, 2);
  const after = peers.behind(second);
  const line = ({ remotePort = 0, localPort = 0 }: Socket) => {
    const end = (port: number) => `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
    return `   0: ${end(remotePort)} ${end(localPort)} 01 00000000:00000000 00:00000000 00000000  4242        0 1 1\n`;
  };
  for (const respond of waiting.splice(0)) respond(line(first));
  assert.deepEqual(await before, { user: 4242, isServer: false });
  await new Promise(setImmediate);
  assert.equal(waiting.length, 2, "the tables are read again");
  for (const respond of waiting.splice(0)) respond(line(second));
  assert.deepEqual(await after, { user: 4242, isServer: false });
});
