import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "#test/support/eventually.ts";
import { type RpcHost, startRpc } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { multipart } from "#test/unit/modules/mod_http_api/support.ts";
import { bytesInUse, call, expectGrowthBelow, idle, watch } from "./lab.ts";

const mebibyte = 1024 * 1024;

let host: RpcHost;
let large: string;
before(async () => {
  host = await startRpc();
  const added = await call<{ Hash: string }>(host, "add?quieter=true", randomBytes(48 * mebibyte));
  large = added.values.at(-1)?.Hash as string;
});
after(() => host?.stop());

const active = async () => {
  const { values } = await call<readonly { Command: string; Active: boolean }[]>(host, "diag/cmds");
  return values.flat().flatMap(({ Command, Active }) => (Active && Command !== "diag/cmds" ? [Command] : []));
};

/** Resolves when the command runs. */
async function begun(command: string): Promise<void> {
  await eventually(`${command} runs`, async () => (await active()).includes(command), { every: 5 });
}

/** Checks that a collection can get exclusive access to the node. */
async function expectFree(): Promise<void> {
  await idle(host);
  const { status, message } = await call(host, "repo/gc?timeout=10s");
  assert.deepEqual([status, message], [200, undefined]);
}

/** Sends the head of an upload, and part of its body. */
function uploading(path: string, body: Uint8Array): ClientRequest {
  const { headers } = multipart([]);
  const sent = request({
    host: "127.0.0.1",
    port: host.http,
    path: `/api/v0/${path}`,
    method: "POST",
    agent: false,
    headers: { ...headers, "transfer-encoding": "chunked" },
  });
  sent.on("error", () => undefined);
  sent.write(body);
  return sent;
}

const begin = (content: Uint8Array, name = "file") => {
  const { body } = multipart([{ filename: name, content: content as Buffer }], { cut: true });
  return body;
};

describe("a client that disconnects", () => {
  for (const path of [
    () => `cat?arg=${large}`,
    () => `get?arg=${large}`,
    () => `get?arg=${large}&compress=true&archive=true`,
  ]) {
    test(`a disconnect in the middle of ${path().split("?")[0]} ends the call`, async () => {
      const inUse = bytesInUse();
      const { read, leave } = await watch(host, path());
      await read(mebibyte);
      leave();
      await expectFree();
      await expectGrowthBelow(inUse, 8 * mebibyte);
    });
  }

  test("clients that disconnect or read nothing occupy only a few blocks", async () => {
    const inUse = bytesInUse();
    const watched = await Promise.all(Array.from({ length: 4 }, () => watch(host, `cat?arg=${large}`)));
    await delay(200);
    await expectGrowthBelow(inUse, 32 * mebibyte);
    for (const { leave } of watched) leave();
    await expectFree();
  });

  for (const path of [
    "add",
    "add?wrap-with-directory=true",
    "add?only-hash=true",
    "add?chunker=rabin",
    "block/put",
    "add?pin=false",
  ]) {
    test(`a disconnect in the middle of the body of ${path} ends the call`, async () => {
      const inUse = bytesInUse();
      const sent = uploading(path, begin(randomBytes(3 * mebibyte)));
      await begun(path.split("?")[0] as string);
      sent.destroy();
      await expectFree();
      await expectGrowthBelow(inUse, 8 * mebibyte);
    });
  }

  test("a disconnect between two files leaves only confirmed files pinned", async () => {
    const sent = uploading(
      "add",
      Buffer.concat([begin(Buffer.from("first"), "a"), Buffer.from("\r\n"), begin(randomBytes(mebibyte), "b")]),
    );
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const [line] = (await once(response, "data")) as [Buffer];
    const { Hash } = JSON.parse(String(line)) as { Hash: string };
    sent.destroy();
    await expectFree();
    assert.equal((await call(host, `cat?arg=${Hash}`)).text, "first");
    const { values } = await call<{ Keys: object }>(host, "pin/ls?type=recursive");
    assert.ok(Object.keys(values[0]?.Keys ?? {}).includes(Hash));
    assert.equal(Object.keys(values[0]?.Keys ?? {}).length, 3);
  });

  test("a client that disconnects while it waits for other calls does not block them", async () => {
    const adding = uploading("add", begin(randomBytes(1000)));
    await begun("add");
    const waiting = uploading("repo/gc", begin(Buffer.alloc(0)));
    await begun("repo/gc");
    waiting.destroy();
    await eventually("repo/gc is over", async () => !(await active()).includes("repo/gc"), { every: 5 });
    const other = await call(host, "add?quieter=true", "not kept waiting");
    assert.deepEqual([other.status, other.message], [200, undefined]);
    adding.destroy();
    await expectFree();
  });
});

test("an add in progress while a collection waits is kept", async () => {
  const content = randomBytes(mebibyte);
  const head = content.subarray(0, mebibyte / 2);
  const tail = content.subarray(mebibyte / 2);
  const adding = uploading("add?quieter=true", begin(head));
  await begun("add");
  const collecting = call(host, "repo/gc");
  await begun("repo/gc");
  const { body } = multipart([]);
  adding.end(Buffer.concat([tail, Buffer.from("\r\n"), body]));
  const [response] = (await once(adding, "response")) as [IncomingMessage];
  const text = String(Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>)));
  const { Hash } = JSON.parse(text) as { Hash: string };
  assert.deepEqual([(await collecting).message], [undefined]);
  assert.ok((await call(host, `cat?arg=${Hash}`)).bytes.equals(content));
  await expectFree();
  assert.ok((await call(host, `cat?arg=${Hash}`)).bytes.equals(content));
});

test("a body that is shorter than its length adds nothing beyond what was confirmed", async () => {
  const body = begin(randomBytes(mebibyte));
  const { headers } = multipart([]);
  const sent = request({
    host: "127.0.0.1",
    port: host.http,
    path: "/api/v0/add",
    method: "POST",
    agent: false,
    headers: { ...headers, "content-length": body.length + 1000 },
  });
  let confirmed = "";
  sent.on("response", (response) =>
    response.on("data", (piece) => void (confirmed += piece)).on("error", () => undefined),
  );
  sent.on("error", () => undefined);
  sent.write(body);
  await begun("add");
  sent.socket?.end();
  await idle(host);
  assert.ok(!confirmed.includes("Hash"), confirmed);
  sent.destroy();
  await expectFree();
});
