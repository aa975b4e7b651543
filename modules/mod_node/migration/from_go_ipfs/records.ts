/**
 * Reads the records of go-ipfs 0.9.0 and Kubo 0.43 in their database, and maps them to the keys of
 * this node's metadata.
 */
import { base32upper } from "multiformats/bases/base32";
import { base64url } from "multiformats/bases/base64";
import type { CID } from "multiformats/cid";
import { decode as decodeMultihash } from "multiformats/hashes/digest";
import { rootKey } from "../../content/mfs/journal.ts";
import { PIN_NAMES, type PinMode, pinKey } from "../../content/pins/pins.ts";
import { raw } from "../../formats/cid/codecs.ts";
import { makeCid } from "../../formats/cid/make.ts";
import { CidSet } from "../../formats/cid/set.ts";
import { castCid } from "../../formats/cid/text.ts";
import { decodeCbor } from "../../formats/dag_cbor/value.ts";
import { PUBLISHED_PREFIX } from "../../network/ipns_record/keys.ts";
import { decodeReference } from "../../storage/filestore/reference.ts";
import { referenceKey } from "../../storage/filestore/reference_store.ts";
import { failure } from "../../util/errors.ts";
import type { KeyValues } from "./databases.ts";

/** Keys in the database of go-ipfs. */
export const goIpfsKeys = {
  /** 1 while pins are being changed; the index is then unreliable. */
  dirty: "/pins/state/dirty",
  /** CBOR of `cid` and `mode`, and of `name` for a named pin. */
  pin: "/pins/pin/",
  /** CID of a pin, then the id of its record, both in base64url; the value is empty. */
  index: { recursive: "/pins/index/cidRindex/", direct: "/pins/index/cidDindex/" },
  /** Name of a pin, then the id of its record, both in base64url; the value is empty. */
  nameIndex: "/pins/index/nameIndex/",
  /** Pins before repo version 11, which are stored in blocks. */
  oldPins: "/local/pins",
  /** CID of the MFS root. */
  root: "/local/filesroot",
  /** References of the filestore, by the base32 of the CID; in Kubo 0.43, of its multihash. */
  reference: "/filestore/",
  /** Published IPNS records, by the base32 of the peer id. */
  name: "/ipns/",
} as const;

/** Pin modes by their numbers in go-ipfs. */
export const pinModes: readonly PinMode[] = ["recursive", "direct"];

/** Prefix of published names in the metadata; the base32 of the peer id follows. */
export const nameKey = PUBLISHED_PREFIX;

/** A record of go-ipfs under its key in this node's metadata. */
export interface GoIpfsRecord {
  readonly key: string;
  readonly value: Uint8Array;
  /** Undefined if the record does not belong to one block. */
  readonly cid: CID | undefined;
}

/**
 * Yields all records.
 * @throws NodeError for a record that cannot be read; it is not skipped, because it may be a pin
 */
export async function* recordsIn(database: KeyValues): AsyncGenerator<GoIpfsRecord, void, undefined> {
  yield* pinsIn(database);
  const root = await database.get(goIpfsKeys.root);
  if (root !== undefined)
    yield { key: rootKey, value: readable(goIpfsKeys.root, () => castCid(root)).bytes, cid: undefined };
  for await (const [key, value] of under(database, goIpfsKeys.reference)) {
    readable(key, () => decodeReference(value));
    const cid = readable(key, () => referredCid(base32upper.baseDecode(rest(key))));
    yield { key: referenceKey(cid), value, cid };
  }
  for await (const [key, value] of under(database, goIpfsKeys.name)) {
    yield { key: nameKey + rest(key), value, cid: undefined };
  }
}

/** Yields pins of the records, and those of the index unless it may be out of date. */
async function* pinsIn(database: KeyValues): AsyncGenerator<GoIpfsRecord, void, undefined> {
  if ((await database.get(goIpfsKeys.oldPins)) !== undefined) {
    throw failure("DATABASE_RECORD_INVALID", { reason: `${goIpfsKeys.oldPins} has pins of a repo before version 11` });
  }
  const seen: Record<PinMode, CidSet> = { recursive: new CidSet(), direct: new CidSet() };
  for await (const [key, value] of under(database, goIpfsKeys.pin)) {
    const { cid, mode, name } = readable(key, () => pinIn(value));
    const isFirst = !seen.recursive.has(cid) && !seen.direct.has(cid);
    seen[mode].add(cid);
    yield { key: pinKey(mode, cid), value: none, cid };
    if (name.length > 0 && isFirst) yield { key: PIN_NAMES + cid, value: name, cid };
  }
  const dirty = (await database.get(goIpfsKeys.dirty))?.[0] === 1;
  for (const mode of dirty ? [] : pinModes) {
    const prefix = goIpfsKeys.index[mode];
    for await (const [key] of under(database, prefix)) {
      const [text = ""] = key.slice(prefix.length).split("/");
      const cid = readable(key, () => castCid(base64url.decode(text)));
      if (!seen[mode].has(cid)) yield { key: pinKey(mode, cid), value: none, cid };
    }
  }
}

const none = new Uint8Array();

/** The filestore refers only to raw leaves, so the multihash determines the CID. */
function referredCid(bytes: Uint8Array): CID {
  try {
    return makeCid(1, raw, decodeMultihash(bytes));
  } catch {
    return castCid(bytes);
  }
}

interface PinRecord {
  readonly cid: CID;
  readonly mode: PinMode;
  /** Empty for a pin without a name. */
  readonly name: Uint8Array;
}

function pinIn(value: Uint8Array): PinRecord {
  const record = decodeCbor(value);
  const cid = record instanceof Map ? record.get("cid") : undefined;
  const mode = record instanceof Map ? pinModes[Number(record.get("mode"))] : undefined;
  const name = record instanceof Map ? (record.get("name") ?? "") : undefined;
  if (!(cid instanceof Uint8Array) || mode === undefined || typeof name !== "string")
    throw failure("DATABASE_RECORD_INVALID", { reason: "it is no pin" });
  return { cid: castCid(cid), mode, name: Buffer.from(name, "latin1") };
}

const under = (database: KeyValues, prefix: string) => database.iterator({ gte: prefix, lt: `${prefix}\xff` });

const rest = (key: string) => key.slice(key.lastIndexOf("/") + 1);

/**
 * Returns the result of `read`.
 * @throws NodeError that names the record
 */
export function readable<T>(key: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw failure(
      "DATABASE_RECORD_INVALID",
      { reason: `the record ${key} cannot be read (${(error as Error).message})` },
      error,
    );
  }
}
