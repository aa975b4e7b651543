import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Node } from "modhost/node";
import type { CID } from "multiformats/cid";
import type { Module } from "#core/types.ts";
import { archive } from "#test/endurance/fuzz/node/material.ts";
import { Random } from "#test/endurance/fuzz/random.ts";
import { type RpcHost, startRpc } from "./support.ts";

let host: RpcHost;
const announced: string[] = [];

/** Hears what is to be announced; the node itself is offline, and does not. */
function mod_listener(module: Module): void {
  const { lowLevel } = module.depends("node") as unknown as Node;
  lowLevel.announce = (roots: readonly CID[]) => {
    announced.push(...roots.map(String));
  };
}

before(async () => {
  host = await startRpc({}, { modules: { mod_listener } });
});
after(() => host.stop());

/** The CID of an answer, and whether it was announced. */
async function told(path: string, content?: string): Promise<boolean> {
  announced.length = 0;
  const { status, text } = await host.call(path, content === undefined ? undefined : { file: content });
  assert.equal(status, 200, `${path}: ${text}`);
  return announced.length > 0;
}

let count = 0;
const fresh = () => `content ${(count += 1)}`;
const storing: Readonly<Record<string, () => string>> = {
  add: fresh,
  "add?pin=false": fresh,
  "block/put": fresh,
  "dag/put": () => JSON.stringify({ a: fresh() }),
  "object/put": () => JSON.stringify({ Data: fresh() }),
};

test("what is stored is announced, and nothing of a call that may not use the network", async () => {
  for (const [path, content] of Object.entries(storing)) {
    const also = (option: string) => `${path}${path.includes("?") ? "&" : "?"}${option}`;
    assert.equal(await told(path, content()), true, path);
    assert.equal(await told(also("offline=true"), content()), false, also("offline=true"));
    assert.equal(await told(also("local=true"), content()), false, also("local=true"));
  }
  assert.equal(await told("add?only-hash=true", fresh()), false);
});

test("a pin is announced unless it is set without the network", async () => {
  const add = async () =>
    ((await host.call("add?pin=false&offline=true", { file: fresh() })).lines[0] as { Hash: string }).Hash;
  assert.equal(await told(`pin/add?arg=${await add()}`), true);
  assert.equal(await told(`pin/add?arg=${await add()}&recursive=false`), true);
  assert.equal(await told(`pin/add?arg=${await add()}&offline=true`), false);
});

test("roots of archives are left to the reprovider, as in the reference", async () => {
  const { bytes } = await archive(new Random(1));
  announced.length = 0;
  const body = new FormData();
  body.append("file", new File([new Uint8Array(bytes)], "a.car"));
  const url = `http://127.0.0.1:${host.http}/api/v0/dag/import`;
  const answer = await fetch(url, { method: "POST", body, headers: { connection: "close" } });
  assert.match(await answer.text(), /"PinErrorMsg":""/);
  assert.deepEqual(announced, []);
});
