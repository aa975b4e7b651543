/** Connections on their way to another process, when that process takes them, hangs, or ends. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { describe, type TestContext, test } from "node:test";
import { ConnectionHandoff } from "#core/relay/connection_handoff.ts";
import {
  closeHandle,
  type HandedConnection,
  IpcChannel,
  type IpcPeer,
  now,
  type TakeConnection,
} from "#core/relay/ipc_channel.ts";
import { eventually } from "#test/support/eventually.ts";

/**
 * Imitates Node's IPC channel: messages after a handle wait until it is acknowledged, and are lost
 * when the channel closes.
 */
class Peer implements IpcPeer {
  connected = true;
  readonly #other: () => Peer;
  readonly #queue: (() => void)[] = [];
  #listener: (message: unknown, handle: unknown) => void = () => undefined;
  #isWaiting = false;
  /** The process reads nothing. */
  isHung = false;
  /** The process receives no handles, because it has too many open files. */
  losesHandles = false;

  constructor(other: () => Peer) {
    this.#other = other;
  }

  send(message: unknown, handle: unknown, _options: unknown, sent: (error: Error | null) => void): boolean {
    const write = () => {
      setImmediate(sent, null);
      this.#isWaiting = handle !== undefined;
      setImmediate(() => this.#arrive(message, handle));
    };
    if (this.#isWaiting) this.#queue.push(write);
    else write();
    return true;
  }

  #arrive(message: unknown, handle: unknown): void {
    const other = this.#other();
    if (other.isHung || !other.connected) return;
    const isLost = handle !== undefined && other.losesHandles;
    if (!isLost) other.#listener(structuredClone(message), handle);
    if (handle === undefined) return;
    this.#isWaiting = false;
    while (!this.#isWaiting && this.#queue.length > 0) this.#queue.shift()?.();
  }

  on(_event: "message", listener: (message: unknown, handle: unknown) => void): void {
    this.#listener = listener;
  }
}

/** A process, as the supervisor reaches it. */
function processOf(taken: TakeConnection = () => undefined) {
  const here: Peer = new Peer(() => there);
  const there: Peer = new Peer(() => here);
  const channel = new IpcChannel(here, {}, ({ handle }) => closeHandle(handle));
  const far = new IpcChannel(there, {}, taken);
  const die = () => {
    here.connected = false;
    there.connected = false;
    channel.end(new Error("it has ended"));
  };
  return { channel, far, there, die };
}

/** A handle that counts how often it is closed. */
function fakeHandle() {
  const handle = { closed: 0, close: () => void (handle.closed += 1) };
  return handle;
}

const head = Buffer.from("GET /x HTTP/1.1\r\n\r\n");

function passing(handle: object, more: Partial<HandedConnection> = {}): HandedConnection {
  return { handle, service: "http", head, to: 1, until: now() + 60_000, ...more };
}

/** Opens connections of clients, and collects their responses. */
async function clients(t: TestContext, count: number) {
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted: Socket[] = [];
  server.on("connection", (socket) => accepted.push(socket));
  const { port } = server.address() as { port: number };
  const got: Promise<string>[] = [];
  for (let at = 0; at < count; at += 1) {
    const client = connect({ port, host: "127.0.0.1" });
    client.write(head);
    got.push(text(client));
    await eventually("it is accepted", () => accepted.length > at, { every: 1 });
  }
  t.after(() => server.close());
  return { accepted, got };
}

const refused = /^HTTP\/1\.1 503 Service Unavailable\r\n.*\r\nRetry-After: 1\r\n.*\r\n\r\n503 .* being restarted\n$/s;

describe("connections handed to another process", () => {
  test("are closed here once the other process has them, however many there are, in their order", async () => {
    const heads: string[] = [];
    const { channel } = processOf(({ head: bytes }) => heads.push(Buffer.from(bytes).toString()));
    const handoff = new ConnectionHandoff(() => channel);
    const handles = Array.from({ length: 300 }, fakeHandle);
    for (const [at, handle] of handles.entries()) handoff.take(passing(handle, { head: Buffer.from(String(at)) }));
    await eventually("all are there", () => heads.length === 300, { every: 1 });
    await handoff.close();
    assert.deepEqual(heads, [...handles.keys()].map(String));
    assert.ok(handles.every(({ closed }) => closed === 1));
  });

  test("go to the next process when theirs ends before it has acknowledged all of them", async () => {
    const taken: object[] = [];
    const first = processOf();
    const next = processOf(({ handle }) => taken.push(handle));
    let current: IpcChannel | undefined = first.channel;
    const handoff = new ConnectionHandoff(() => current);
    first.there.isHung = true;
    const handles = Array.from({ length: 100 }, fakeHandle);
    for (const handle of handles) handoff.take(passing(handle));
    await new Promise(setImmediate);
    current = undefined;
    first.die();
    await new Promise(setImmediate);
    assert.ok(handles.every(({ closed }) => closed === 0));
    current = next.channel;
    handoff.flush();
    await eventually("the next one has all", () => taken.length === handles.length, { every: 1 });
    assert.deepEqual(new Set(taken), new Set(handles));
    await handoff.close();
    assert.ok(handles.every(({ closed }) => closed === 1));
  });

  test("get 503 when their process is not replaced in time", async (t) => {
    const { accepted, got } = await clients(t, 2);
    const handoff = new ConnectionHandoff(() => undefined);
    for (const socket of accepted) handoff.takeFrom(socket, { service: "http", head, to: 1 });
    await handoff.close();
    for (const response of await Promise.all(got)) assert.match(response, refused);
    assert.ok(accepted.every(({ destroyed }) => destroyed));
  });

  test("get 503 when their deadline passes while their process hangs, and are closed once it has ended", async (t) => {
    const { accepted, got } = await clients(t, 3);
    const { channel, there, die } = processOf();
    there.isHung = true;
    const handoff = new ConnectionHandoff(() => channel);
    let open = accepted.length;
    const until = now() + 30;
    for (const socket of accepted) {
      const owner = socket as unknown as { _handle: { close(done?: () => void): void } | null };
      const handle = owner._handle as { close(done?: () => void): void };
      const close = handle.close.bind(handle);
      handle.close = (done) => {
        open -= 1;
        close(done);
      };
      owner._handle = null;
      handoff.take(passing(handle, { until }));
    }
    for (const response of await Promise.all(got)) assert.match(response, refused);
    // Node aborts a process that closes what it is sending.
    assert.equal(open, accepted.length);
    die();
    await eventually("all are closed", () => open === 0, { every: 1 });
  });

  test("get 503 when the other process has no file descriptors left", async (t) => {
    const { accepted, got } = await clients(t, 2);
    const { channel, there } = processOf();
    there.losesHandles = true;
    const handoff = new ConnectionHandoff(() => channel);
    for (const socket of accepted) handoff.takeFrom(socket, { service: "http", head, to: 1 });
    for (const response of await Promise.all(got)) assert.match(response, refused);
  });

  test("are not served by a process that receives them after their deadline, when their clients have got a response", async () => {
    const taken: object[] = [];
    const { channel } = processOf(({ handle }) => taken.push(handle));
    const handle = fakeHandle();
    assert.equal(await channel.handOver(passing(handle, { until: now() - 1 })), false);
    await new Promise(setImmediate);
    assert.deepEqual([taken, handle.closed], [[], 1]);
  });

  test("get a 503 without a body for HEAD", async (t) => {
    const { accepted, got } = await clients(t, 1);
    const handoff = new ConnectionHandoff(() => undefined);
    handoff.takeFrom(accepted[0] as Socket, { service: "http", head: Buffer.from("HEAD / HTTP/1.1\r\n\r\n"), to: 2 });
    await handoff.close();
    assert.match((await got[0]) as string, /^HTTP\/1\.1 503 .*\r\nContent-Length: \d+\r\n\r\n$/s);
  });
});

describe("the end of an IPC channel", () => {
  test("rejects pending calls, and closes received sockets that were not taken", async () => {
    const { channel, far, there } = processOf();
    const handle = fakeHandle();
    far.give("port", handle);
    await eventually("it has come", () => handle.closed === 0);
    await new Promise(setImmediate);
    there.isHung = true;
    const waiting = ["step", "figures", "reload", "ping"].map((name) => channel.call(name));
    channel.end(new Error("it has ended"));
    for (const result of waiting) await assert.rejects(result, { message: "it has ended" });
    assert.equal(handle.closed, 1);
    assert.equal(channel.take("port"), undefined);
    far.give("late", handle);
    await eventually("what comes later is closed", () => handle.closed === 2, { every: 1 });
  });

  test("is not caused by messages of other code; a socket sent with such a message is closed", async () => {
    const strays: unknown[] = [];
    const there = new Peer(() => here);
    const here: Peer = new Peer(() => there);
    const channel = new IpcChannel(
      here,
      {},
      () => undefined,
      (message) => strays.push(message),
    );
    const handle = fakeHandle();
    const odd = ["ready", null, 7, { cmd: "x" }, { socket: 7 }, { socket: {} }, { connection: head, to: 1 }];
    for (const message of odd) there.send(message, undefined, undefined, () => undefined);
    there.send({ type: "handle" }, handle, undefined, () => undefined);
    await eventually("all have come", () => strays.length === odd.length + 1, { every: 1 });
    assert.deepEqual([handle.closed, channel.ended], [1, undefined]);
  });
});
