/**
 * Writes the metadata of this node as a LevelDB of go-ipfs 0.9.0 or Kubo 0.43, so that these
 * programs can open the repo.
 */
import { randomBytes } from "node:crypto";
import { base32upper } from "multiformats/bases/base32";
import { base64url } from "multiformats/bases/base64";
import type { CID } from "multiformats/cid";
import { rootKey } from "../../content/mfs/journal.ts";
import { PIN_NAMES, type PinMode, pinPrefix } from "../../content/pins/pins.ts";
import { parseCid } from "../../formats/cid/text.ts";
import { encodeCbor } from "../../formats/dag_cbor/write.ts";
import { encodeReference } from "../../storage/filestore/reference.ts";
import { ReferenceStore } from "../../storage/filestore/reference_store.ts";
import type { MetadataStore } from "../../storage/metadata/store.ts";
import type { StorePaths } from "../../storage/repo/datastore.ts";
import { batches } from "../../util/async/batches.ts";
import { openLevelDb } from "./leveldb.ts";
import { goIpfsKeys, nameKey, pinModes } from "./records.ts";

/** Records per batch. */
const MAX_BATCH = 4096;
const empty = new Uint8Array();

/**
 * Creates the LevelDB in a folder that has none; it is durable when the promise resolves.
 * `namedAfter` returns the key of a filestore reference: the CID, or the multihash for Kubo.
 */
export async function exportMetadata(
  folder: string,
  metadata: MetadataStore,
  namedAfter?: StorePaths["namedAfter"],
): Promise<void> {
  const levelDb = await openLevelDb(folder);
  try {
    for await (const page of batches(recordsOf(metadata, namedAfter), MAX_BATCH)) {
      const puts = page.map(([key, value]) => ({ type: "put", key, value }) as const);
      await levelDb.batch(puts, { sync: true });
    }
  } finally {
    await levelDb.close();
  }
}

async function* recordsOf(
  metadata: MetadataStore,
  namedAfter?: StorePaths["namedAfter"],
): AsyncGenerator<[string, Uint8Array]> {
  for (const mode of pinModes) {
    const prefix = pinPrefix(mode);
    for await (const [key] of metadata.range({ prefix })) {
      const cid = parseCid(key.slice(prefix.length));
      yield* pinRecords(cid, mode, await metadata.get(PIN_NAMES + cid));
    }
  }
  yield [goIpfsKeys.dirty, Uint8Array.of(0)];
  const root = await metadata.get(rootKey);
  if (root !== undefined) yield [goIpfsKeys.root, root];
  for await (const { cid, reference } of new ReferenceStore(metadata).list()) {
    const named = namedAfter === "multihash" ? cid.multihash : cid;
    yield [goIpfsKeys.reference + base32upper.baseEncode(named.bytes), encodeReference(reference)];
  }
  for await (const [key, value] of metadata.range({ prefix: nameKey })) {
    yield [goIpfsKeys.name + key.slice(nameKey.length), value];
  }
}

/** Yields the record of a pin under a random id, and its entries in the indexes. */
function* pinRecords(cid: CID, mode: PinMode, name?: Uint8Array): Generator<[string, Uint8Array]> {
  const id = randomBytes(16).toString("hex");
  const cidText = base64url.encode(cid.bytes);
  const idText = base64url.encode(Buffer.from(`/${id}`));
  yield [
    goIpfsKeys.pin + id,
    encodeCbor(
      new Map<string, Uint8Array | bigint | string>([
        ["cid", cid.bytes],
        ["mode", BigInt(pinModes.indexOf(mode))],
        ...(name === undefined ? [] : [["name", Buffer.from(name).toString("latin1")] as const]),
      ]),
    ),
  ];
  yield [`${goIpfsKeys.index[mode]}${cidText}/${idText}`, empty];
  if (name !== undefined) yield [`${goIpfsKeys.nameIndex}${base64url.encode(name)}/${idText}`, empty];
}
