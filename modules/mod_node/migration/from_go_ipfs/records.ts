/** The records of go-ipfs 0.9.0 in its LevelDB, under the keys that this node has for them. */
import { base32upper } from "multiformats/bases/base32";
import { base64url } from "multiformats/bases/base64";
import type { CID } from "multiformats/cid";
import { rootKey } from "../../content/mfs/journal.ts";
import { type PinMode, pinKey } from "../../content/pins/pins.ts";
import { CidSet } from "../../formats/cid/set.ts";
import { castCid } from "../../formats/cid/text.ts";
import { decodeCbor } from "../../formats/dag_cbor/value.ts";
import { PUBLISHED_PREFIX } from "../../network/ipns_record/keys.ts";
import { decodeReference } from "../../storage/filestore/reference.ts";
import { referenceKey } from "../../storage/filestore/reference_store.ts";
import { NodeError } from "../../util/errors.ts";
import type { LevelDb } from "./leveldb.ts";

/** Keys of go-ipfs. */
export const goIpfsKeys = {
  /** 1 while pins are being changed: the index is not reliable then. */
  dirty: "/pins/state/dirty",
  /** CBOR of `cid` and `mode`. */
  pin: "/pins/pin/",
  /** The CID of a pin, then the id of its record, both in base64url; no value. */
  index: { recursive: "/pins/index/cidRindex/", direct: "/pins/index/cidDindex/" },
  /** Pins before repo version 11, which are in blocks. */
  oldPins: "/local/pins",
  /** CID of the root of MFS. */
  root: "/local/filesroot",
  /** References of the filestore, by the base32 of the CID. */
  reference: "/filestore/",
  /** Published names, by the base32 of the peer id: IPNS records. */
  name: "/ipns/",
} as const;

/** Pin modes by their numbers in go-ipfs. */
export const pinModes: readonly PinMode[] = ["recursive", "direct"];

/** Prefix of published names in the metadata; the base32 of the peer id follows. */
export const nameKey = PUBLISHED_PREFIX;

/** A record of go-ipfs, under the key that it has in the metadata. */
export interface GoIpfsRecord {
  readonly key: string;
  readonly value: Uint8Array;
  /** Undefined when the record does not belong to one block. */
  readonly cid: CID | undefined;
}

/** @throws NodeError for a record that cannot be read: it is never skipped, since it may be a pin */
export async function* recordsIn(levelDb: LevelDb): AsyncGenerator<GoIpfsRecord, void, undefined> {
  yield* pinsIn(levelDb);
  const root = await levelDb.get(goIpfsKeys.root);
  if (root !== undefined)
    yield { key: rootKey, value: readable(goIpfsKeys.root, () => castCid(root)).bytes, cid: undefined };
  for await (const [key, value] of under(levelDb, goIpfsKeys.reference)) {
    readable(key, () => decodeReference(value));
    const cid = readable(key, () => castCid(base32upper.baseDecode(rest(key))));
    yield { key: referenceKey(cid), value, cid };
  }
  for await (const [key, value] of under(levelDb, goIpfsKeys.name)) {
    yield { key: nameKey + rest(key), value, cid: undefined };
  }
}

/** Pins of the records, and those of the index unless it may be out of date. */
async function* pinsIn(levelDb: LevelDb): AsyncGenerator<GoIpfsRecord, void, undefined> {
  if ((await levelDb.get(goIpfsKeys.oldPins)) !== undefined) {
    throw new NodeError(`${goIpfsKeys.oldPins} has pins of a repo before version 11`);
  }
  const told: Record<PinMode, CidSet> = { recursive: new CidSet(), direct: new CidSet() };
  for await (const [key, value] of under(levelDb, goIpfsKeys.pin)) {
    const { cid, mode } = readable(key, () => pinIn(value));
    told[mode].add(cid);
    yield { key: pinKey(mode, cid), value: none, cid };
  }
  const dirty = (await levelDb.get(goIpfsKeys.dirty))?.[0] === 1;
  for (const mode of dirty ? [] : pinModes) {
    const prefix = goIpfsKeys.index[mode];
    for await (const [key] of under(levelDb, prefix)) {
      const [text = ""] = key.slice(prefix.length).split("/");
      const cid = readable(key, () => castCid(base64url.decode(text)));
      if (!told[mode].has(cid)) yield { key: pinKey(mode, cid), value: none, cid };
    }
  }
}

const none = new Uint8Array();

function pinIn(value: Uint8Array): { readonly cid: CID; readonly mode: PinMode } {
  const record = decodeCbor(value);
  const cid = record instanceof Map ? record.get("cid") : undefined;
  const mode = record instanceof Map ? pinModes[Number(record.get("mode"))] : undefined;
  if (!(cid instanceof Uint8Array) || mode === undefined) throw new NodeError("it is no pin");
  return { cid: castCid(cid), mode };
}

const under = (levelDb: LevelDb, prefix: string) => levelDb.iterator({ gte: prefix, lt: `${prefix}\xff` });

const rest = (key: string) => key.slice(key.lastIndexOf("/") + 1);

function readable<T>(key: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new NodeError(`the record ${key} cannot be read (${(error as Error).message})`, { cause: error });
  }
}
