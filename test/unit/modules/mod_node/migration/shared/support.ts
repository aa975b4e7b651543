/**
 * Creates repos with an example of everything that a migration copies, and returns what nodes show
 * of it.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { prefixedStore, type SharedStoreSettings } from "modhost/node";
import { CID } from "multiformats/cid";
import type { LowLevelNode, NodeOptions } from "#node/node/low_level_node.ts";
import { openS3 } from "#node/storage/shared/s3/client.ts";
import { s3Settings } from "#node/storage/shared/settings.ts";
import { sharedStore } from "#test/support/engines/shared_store.ts";
import { fileAt, opened, pinsOf, rootOf } from "#test/unit/modules/mod_node/migration/from_go_ipfs/support.ts";
import { noise } from "#test/unit/modules/mod_node/storage/blockstore/samples.ts";

/**
 * Returns the settings of an empty store with small segments and a secret for keys in that folder.
 */
export async function storeIn(folder: string, more: Partial<SharedStoreSettings> = {}) {
  const { settings } = await sharedStore();
  const keys_secret = join(folder, "keys-secret");
  await writeFile(keys_secret, "sixteen characters and more");
  return { ...settings, segment: 64 * 1024, keys_secret, ...more };
}

/** Returns the keys of the objects in the store. */
export async function objectsOf(settings: SharedStoreSettings): Promise<string[]> {
  const objects = openS3(s3Settings(settings));
  const found = (await Array.fromAsync(objects.list(""))).flat();
  await objects.close();
  return found.map(({ key }) => key).sort();
}

/**
 * Adds a file of several chunks, pinned; MFS files, one of them only in the journal; a name; a
 * direct pin; and the state of a module.
 */
export function fill(repo: NodeOptions | string, { chunks = 60, seed = 1 } = {}): Promise<void> {
  return opened(repo, async (node) => {
    const client = (await import("#node/library/client_node.ts")).clientNode(node as never);
    const { cid } = await client.add(noise(chunks * 4096, seed), { chunker: "size-4096" });
    await node.pins.keep([cid], "of some chunks");
    await client.files.write("/kept", "among the files", { create: true });
    await client.files.write("/deep/er", "and deeper", { create: true, parents: true });
    await node.keys.generate("mine", { type: "ed25519" });
    await node.names.publish(await node.names.key("mine"), `/ipfs/${cid}`, { offline: true });
    const { cid: direct } = await client.add("pinned directly", { pin: false });
    await client.pin.add(direct, { recursive: false });
    const own = prefixedStore(node.metadata, "modules/example/");
    await own.transaction((writer) => writer.put("state", Buffer.from(String(seed))));
  });
}

/** Returns what a node shows of that content. */
export function shown(repo: NodeOptions | string) {
  return opened(repo, async (node) => {
    const { recursive, direct } = await pinsOf(node);
    const keys = (await node.keys.list()).filter(({ name }) => name !== "self");
    return {
      recursive,
      direct,
      names: await Promise.all(recursive.map((cid) => node.pins.name(CID.parse(cid)))),
      root: await rootOf(node),
      texts: [await fileAt(node, `${await rootOf(node)}/kept`), await fileAt(node, `${await rootOf(node)}/deep/er`)],
      keys: keys.map(({ name, id }) => `${name} ${id}`),
      published: await Promise.all(keys.map(({ id }) => node.names.resolve(`/ipns/${id}`, { offline: true }))),
      module: Buffer.from((await node.metadata.get("modules/example/state")) ?? []).toString(),
      unreadable: await unreadable(node),
    };
  });
}

/** Returns the blocks below pins that cannot be read. */
async function unreadable(node: LowLevelNode): Promise<string[]> {
  const found: string[] = [];
  for await (const cid of node.blocks.store.keys())
    if ((await node.blocks.store.check(cid)) !== true) found.push(cid.toString());
  return found;
}
