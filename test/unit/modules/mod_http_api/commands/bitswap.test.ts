import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type RpcHost, startRpc } from "./support.ts";

const nobody = "12D3KooWGC6TvWhfapngX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5";
const onlineOnly = "this command must be run in online mode. Try running 'ipfs daemon' first";
const missing = "bafkreib7o2rto24ead4t3n2vdcauy43g5eweztfpyxcfaezhwurxmacdkq";

let a: RpcHost;
let b: RpcHost;
let offline: RpcHost;
let idA: string;
let idB: string;

before(async () => {
  [a, b, offline] = await Promise.all([
    startRpc({ node_offline: false }),
    startRpc({ node_offline: false }),
    startRpc(),
  ]);
  idA = (await a.value<{ ID: string }>("id")).ID;
  const { ID, Addresses } = await b.value<{ ID: string; Addresses: string[] }>("id");
  idB = ID;
  await a.value(`swarm/connect?arg=${Addresses[0]}`);
});
after(() => Promise.all([a, b, offline].map((host) => host.stop())));

/** Waits until the wantlist is empty or not, and returns it. */
async function wantlist(host: RpcHost, query: string, empty: boolean): Promise<unknown> {
  for (;;) {
    const { Keys } = await host.value<{ Keys: unknown[] | null }>(`bitswap/wantlist${query}`);
    if (((Keys ?? []).length === 0) === empty) return Keys;
    await delay(5);
  }
}

test("a file is read through the other node, and both count the same blocks and bytes", async () => {
  const content = "abcdefgh".repeat(50_000);
  const [added] = (await b.call("add?progress=false", { file: content })).lines as [{ Hash: string }];
  const { Hash } = added;
  assert.equal((await a.call(`cat?arg=${Hash}`)).text, content);
  const bytes = 400_132;
  const stat = await a.value("bitswap/stat");
  assert.deepEqual(Object.keys(stat), [
    "ProvideBufLen",
    "Wantlist",
    "Peers",
    "BlocksReceived",
    "DataReceived",
    "BlocksSent",
    "DataSent",
    "DupBlksReceived",
    "DupDataReceived",
    "MessagesReceived",
  ]);
  assert.deepEqual(
    [stat.BlocksReceived, stat.DataReceived, stat.DupBlksReceived, stat.Peers, stat.Wantlist],
    [3, bytes, 0, [idB], []],
  );
  // Blocks are announced meanwhile.
  const { ProvideBufLen: _before, ...metrics } = stat;
  const { ProvideBufLen: _now, ...same } = await a.value("stats/bitswap");
  assert.deepEqual(same, metrics);
  assert.deepEqual(await a.value(`bitswap/ledger?arg=${idB}`), {
    Peer: idB,
    Value: 0,
    Sent: 0,
    Recv: bytes,
    Exchanged: 3,
  });
  assert.deepEqual(await b.value(`bitswap/ledger?arg=${idA}`), {
    Peer: idA,
    Value: bytes,
    Sent: bytes,
    Recv: 0,
    Exchanged: 3,
  });
  const { text } = await a.call("bitswap/stat?encoding=text&human=true&verbose=true");
  assert.match(
    text,
    new RegExp(
      "^bitswap status\n\tprovides buffer: \\d+ / 256\n\tblocks received: 3\n\tblocks sent: 0\n" +
        "\tdata received: 400 kB\n\tdata sent: 0 B\n\tdup blocks received: 0\n\tdup data received: 0 B\n" +
        `\twantlist \\[0 keys\\]\n\tpartners \\[1\\]\n\t\t${idB}\n$`,
    ),
  );
  const plain = await a.call("stats/bitswap?encoding=text");
  assert.match(plain.text, /\tdata received: 400132\n(.*\n)*\tpartners \[1\]\n$/);
  const ledger = await b.call(`bitswap/ledger?arg=${idA}&encoding=text`);
  assert.equal(
    ledger.text,
    `Ledger for ${idA}\nDebt ratio:\t400132.000000\nExchanges:\t3\nBytes sent:\t400132\nBytes received:\t0\n\n`,
  );
});

test("wanted blocks are listed on both sides for as long as a call waits for them", async () => {
  const url = `http://127.0.0.1:${a.http}/api/v0/block/get?arg=${missing}`;
  const leaving = new AbortController();
  const waiting = fetch(url, { method: "POST", signal: leaving.signal }).catch((error: Error) => error.name);
  assert.deepEqual(await wantlist(a, "", false), [{ "/": missing }]);
  assert.deepEqual(await wantlist(b, `?peer=${idA}`, false), [{ "/": missing }]);
  assert.equal((await a.call("bitswap/wantlist?encoding=text")).text, `${missing}\n`);
  assert.deepEqual((await a.value(`bitswap/wantlist?peer=${idA}`)).Keys, [{ "/": missing }]);
  assert.match(
    (await a.call("bitswap/stat?encoding=text")).text,
    new RegExp(`\twantlist \\[1 keys\\]\n\t\t${missing}\n`),
  );
  leaving.abort();
  assert.equal(await waiting, "AbortError");
  assert.deepEqual(await wantlist(a, "", true), []);
  assert.equal(await wantlist(b, `?peer=${idA}`, true), null);
});

test("a timeout ends the wait with the message of go-ipfs", async () => {
  const [status, message] = await a.failure(`block/get?arg=${missing}&timeout=100ms`);
  assert.equal(status, 500);
  assert.match(String(message), /context deadline exceeded/);
});

test("an unknown peer has exchanged nothing, and an invalid peer is refused", async () => {
  assert.deepEqual(await a.value(`bitswap/ledger?arg=${nobody}`), {
    Peer: nobody,
    Value: 0,
    Sent: 0,
    Recv: 0,
    Exchanged: 0,
  });
  assert.deepEqual(await a.value(`bitswap/wantlist?peer=${nobody}`), { Keys: null });
  for (const path of ["bitswap/ledger?arg=x", "bitswap/wantlist?peer=x", "bitswap/wantlist?peer="]) {
    assert.deepEqual(await a.failure(path), [500, "failed to parse peer ID: cid too short"], path);
  }
});

test("without a network, the bitswap commands fail with that message", async () => {
  for (const path of ["bitswap/wantlist", `bitswap/ledger?arg=${nobody}`, "bitswap/ledger?arg=x"]) {
    assert.deepEqual(await offline.failure(path), [500, onlineOnly], path);
  }
  for (const path of ["bitswap/stat", "stats/bitswap"])
    assert.deepEqual(await offline.failure(path), [400, onlineOnly]);
});
