import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addBootstrap,
  addDefaultBootstrap,
  clearBootstrap,
  listBootstrap,
  removeBootstrap,
} from "#node/network/swarm/bootstrap_list.ts";
import type { ConfigFile } from "#node/storage/repo/config.ts";
import { bootstrapPeers } from "#node/storage/repo/defaults.ts";

type Config = Parameters<typeof listBootstrap>[0];

/** A configuration that only has this key. */
function configWith(list: readonly string[] | null, isAutoConfOn = true): Config & { list: readonly string[] | null } {
  const config = {
    list,
    value: (key: string) => (key === "Bootstrap" ? config.list : isAutoConfOn),
    async update(_key: "Bootstrap", change: (before: readonly string[] | null) => readonly string[] | null) {
      config.list = change(config.list);
    },
  };
  return config as unknown as Pick<ConfigFile, "value" | "update"> & { list: readonly string[] | null };
}

const first = "QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN";
const second = "QmQCU2EcMqAqQPR2i9bChDtGNJchTbq5TbXJJ16u19uLTa";
const near = `/ip4/192.0.2.10/tcp/4001/p2p/${first}`;
const far = `/ip4/192.0.2.11/tcp/4001/p2p/${first}`;
const other = `/ip4/192.0.2.12/tcp/4001/p2p/${second}`;

test("new entries go in front, and known ones are returned as well", async () => {
  const config = configWith([near]);
  assert.deepEqual(await addBootstrap(config, [other, near, other]), [other, near]);
  assert.deepEqual(config.list, [other, near]);
  assert.deepEqual(await addBootstrap(config, [far]), [far]);
  assert.deepEqual(config.list, [far, other, near]);
});

test("addresses of one peer are listed together", () => {
  assert.deepEqual(listBootstrap(configWith([near, other, far])), [near, far, other]);
  assert.deepEqual(listBootstrap(configWith(null)), []);
});

test("both spellings of an address are one entry", async () => {
  const config = configWith([near]);
  const old = near.replace("/p2p/", "/ipfs/");
  assert.deepEqual(await addBootstrap(config, [old]), [old]);
  assert.deepEqual(listBootstrap(config), [near]);
  assert.deepEqual(await removeBootstrap(config, [near]), [near]);
  assert.deepEqual(config.list, []);
});

test("an invalid address is refused before anything is stored", async () => {
  const config = configWith([near]);
  const refused = (texts: readonly string[], message: string | RegExp) =>
    assert.rejects(addBootstrap(config, texts), { message });
  await refused([], "no bootstrap peers to add");
  await refused([other, "/ip4/192.0.2.1/tcp/4001"], "invalid bootstrap address: /ip4/192.0.2.1/tcp/4001");
  await refused([`/p2p/${first}`], `bootstrap address without a transport: /p2p/${first}`);
  await refused(["x"], 'failed to parse multiaddr "x": must begin with /');
  await assert.rejects(removeBootstrap(config, ["/ip4/192.0.2.1/tcp/4001"]), { message: "invalid p2p multiaddr" });
  assert.deepEqual(config.list, [near]);
});

test("an id alone removes all addresses of its peer", async () => {
  const config = configWith([near, other, far]);
  assert.deepEqual(await removeBootstrap(config, [`/p2p/${first}`]), [near, far]);
  assert.deepEqual(config.list, [other]);
  assert.deepEqual(await removeBootstrap(config, [near]), []);
  assert.deepEqual(await removeBootstrap(config, []), []);
});

test("the list is emptied, and filled with the built-in peers", async () => {
  const config = configWith([near, other]);
  assert.deepEqual(await clearBootstrap(config), [near, other]);
  assert.equal(config.list, null);
  assert.deepEqual(await addDefaultBootstrap(config), bootstrapPeers);
  assert.deepEqual([...listBootstrap(config)].sort(), [...bootstrapPeers].sort());
});

test("the word auto is stored as it is, and next to it only all peers can be removed", async () => {
  const config = configWith(["auto", near]);
  assert.deepEqual(await addBootstrap(config, [other, "auto"]), [other, "auto"]);
  assert.deepEqual(config.list, [other, "auto", near]);
  assert.deepEqual(await addBootstrap(config, [far]), [far]);
  assert.deepEqual(config.list, [far, other, "auto", near]);
  for (const texts of [[far], ["auto"], []]) {
    await assert.rejects(removeBootstrap(config, texts), {
      message: /^cannot remove individual bootstrap peers when using 'auto' placeholder: /,
    });
  }
  assert.deepEqual(await clearBootstrap(config), [far, other, "auto", near]);
  assert.equal(config.list, null);
});

test("the word auto stands for no peers while AutoConf is disabled, and cannot be added", async () => {
  const config = configWith(["auto", near, other], false);
  assert.deepEqual(listBootstrap(config), [near, other]);
  await assert.rejects(addBootstrap(config, ["auto"]), { message: /AutoConf is disabled/ });
  assert.deepEqual(await removeBootstrap(config, [near]), [near]);
  assert.deepEqual(config.list, ["auto", other]);
  await assert.rejects(removeBootstrap(config, ["auto"]), {
    message: 'failed to parse multiaddr "auto": must begin with /',
  });
});
