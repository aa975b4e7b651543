import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { Users } from "../../../../modules/mod_http_admin/peer.ts";

/** The ends of a server's connections, and their clients. */
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
  test(`the user behind a connection is told at ${host}, however many ask at once, by few readings`, {
    skip: !isLinux,
  }, async (t) => {
    const { accepted, close } = await connected(host, 100);
    t.after(close);
    let readings = 0;
    const users = new Users((table) => {
      readings += 1;
      return readFile(table, "latin1").catch(() => "");
    });
    const found = await Promise.all(accepted.map((socket) => users.behind(socket)));
    assert.deepEqual(new Set(found), new Set([process.getuid?.()]));
    assert.equal(readings, 2, "both tables once");
    assert.equal(await users.behind(accepted[0] as Socket), process.getuid?.());
    assert.equal(readings, 2, "a connection keeps its user");
  });
}

test("who asks while the tables are read is told by the reading after that", async (t) => {
  const { accepted, close } = await connected("127.0.0.1", 2);
  t.after(close);
  const [first, second] = accepted as [Socket, Socket];
  const waiting: ((text: string) => void)[] = [];
  const users = new Users(() => new Promise((resolve) => void waiting.push(resolve)));
  const before = users.behind(first);
  await new Promise(setImmediate);
  assert.equal(waiting.length, 2);
  const after = users.behind(second);
  const line = ({ remotePort = 0, localPort = 0 }: Socket) => {
    const end = (port: number) => `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
    return `   0: ${end(remotePort)} ${end(localPort)} 01 00000000:00000000 00:00000000 00000000  4242        0 1 1\n`;
  };
  for (const answer of waiting.splice(0)) answer(line(first));
  assert.equal(await before, 4242);
  await new Promise(setImmediate);
  assert.equal(waiting.length, 2, "it is read once more");
  for (const answer of waiting.splice(0)) answer(line(second));
  assert.equal(await after, 4242);
});
