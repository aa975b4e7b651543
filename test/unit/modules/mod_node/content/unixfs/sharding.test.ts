/** The CIDs are those of Kubo 0.43. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { addSettings, type UnixfsAddOptions } from "#node/content/adder/settings.ts";
import { type AddEntry, addTree } from "#node/content/unixfs/add.ts";

async function* of(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

/**
 * Returns the CID of a directory with `count` files whose names are numbers of `pad` digits, and
 * with the files in `more`.
 */
async function directory(
  options: UnixfsAddOptions,
  count: number,
  pad: number,
  text = "",
  more: readonly string[] = [],
) {
  const names = [...Array.from({ length: count }, (_, at) => String(at).padStart(pad, "0")), ...more];
  const entries = (async function* (): AsyncGenerator<AddEntry> {
    yield { path: "d", kind: "directory", body: of("") };
    for (const name of names) yield { path: `d/${name}`, kind: "file", body: of(text) };
  })();
  let last = "";
  for await (const { built } of addTree(entries, addSettings(options), () => undefined)) last = String(built?.cid);
  return last;
}

const sharded = { estimate: "links", threshold: 262_144, maxLinks: 0 } as const;

test("a directory is sharded when names and CIDs of its entries exceed the limit", async () => {
  assert.equal(await directory({ sharded }, 1024, 222), "QmNgbNkuGRJPAubAdVPzDa6CEAzhQHaUatH9Qd1uwo4GGA");
  assert.equal(await directory({ sharded }, 1024, 222, "", ["x"]), "QmXxU2AwCLkktABifmH3T6ArhkmJ2Sky9VXdU9NqDABETo");
  const v1 = { sharded, cidVersion: 1 };
  assert.equal(await directory(v1, 1024, 220), "bafybeidx6qfpp6f4hl3oys47lro6iiqqcmtjipovx5s6k7e6hgpkhtynja");
  assert.equal(
    await directory(v1, 1024, 220, "", ["x"]),
    "bafybeibilw2rwpr7o5copo6att2neqs2xxyunlajbf2qirx72acsdzqq5e",
  );
});

test("the size can also be that of the block, or can be ignored", async () => {
  const v1 = { cidVersion: 1, sharded: { ...sharded, estimate: "block" } } as const;
  const [at, over] = await Promise.all([
    directory(v1, 1807, 100, "", ["y".repeat(81)]),
    directory(v1, 1807, 100, "", ["y".repeat(82)]),
  ]);
  assert.equal(at, "bafybeiguhwyiqqdsqths2yivv7ztncaqeb74inaugktsseyefqsy35e7dq");
  assert.equal(over, "bafybeia4y6hrulkxvzfvhfgzgo6he7uv6vuo6hpe5ofmoumuitrwirrs2m");
  const never = { sharded: { ...sharded, estimate: "disabled" } } as const;
  assert.equal(await directory(never, 1200, 222), "QmYGsYEjQU39bWa5YzLweTjDPmMPyN85aQjZXX2sJUuRV9");
});

test("the number of entries is a further limit", async () => {
  const limited = { sharded: { ...sharded, maxLinks: 3 } };
  assert.equal(await directory(limited, 3, 2, "x"), "QmREQzrauTSejgiw2q6GbRiZkT9S3FF3nt25w7yu3WKhki");
  assert.equal(await directory(limited, 4, 2, "x"), "QmQczk7rB6moTvZqLzJaoK5ZJSQ4P8CFXaWsCUbbLRgaRW");
});

test("shards have the given number of slots", async () => {
  const limited = { sharded: { ...sharded, maxLinks: 3 }, fanout: 8 };
  assert.equal(await directory(limited, 20, 2, "x"), "QmXZZSb8bwnaPPR7ExLfiM8i1Ar6hpHTMwyEWEN6qYwXmg");
  const v1 = (fanout: number) => ({ sharded, fanout, cidVersion: 1 });
  assert.equal(await directory(v1(64), 1025, 220), "bafybeibvrm3qmjmo6eaxctciv3vqnp6jmi4sitcujflgtiae2ndkp4nu3m");
  assert.equal(await directory(v1(1024), 1025, 220), "bafybeicvl3laonz5ceeksgadndcxztifbmzyplwl6udb2xjhpf3fkv5tne");
  assert.throws(() => addSettings({ fanout: 7 }), /power of 2, between 8 and 1024 \(got 7\)/);
});
