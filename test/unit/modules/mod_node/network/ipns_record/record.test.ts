import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parsePeerId } from "#node/formats/peer_id.ts";
import { checkRecord, compareRecords } from "#node/network/ipns_record/check.ts";
import { publicKeyKey, publishedKey, recordKey, recordTopic } from "#node/network/ipns_record/keys.ts";
import { decodeRecord, encodeRecord, encodeRecordData } from "#node/network/ipns_record/record.ts";
import { nextSequence, signRecord } from "#node/network/ipns_record/sign.ts";
import { formatTimestamp, parseTimestamp, timestampAfter } from "#node/network/ipns_record/timestamp.ts";
import { decodeKey, generateKey } from "#node/storage/keystore/key.ts";

type Case = Readonly<Record<string, string>>;

const fixture = new URL("../../../../../fixtures/vectors/network.json", import.meta.url);
const { sections } = JSON.parse(readFileSync(fixture, "utf8"));
const cases = (section: string): readonly Case[] => sections[section].cases;
const base64 = (text = "") => new Uint8Array(Buffer.from(text, "base64"));
const claimOf = ({ value = "", validity = "", sequence = "0", ttl_ns = "0" }: Case) => ({
  value: Buffer.from(value),
  validity,
  sequence: BigInt(sequence),
  ttl: BigInt(ttl_ns),
});

for (const known of cases("name_record_create")) {
  test(`a record of ${known.signer} at sequence ${known.sequence} equals that of go-ipfs byte by byte`, async () => {
    const key = decodeKey(base64(known.private_key_b64));
    assert.equal(Buffer.from(encodeRecordData(claimOf(known))).toString("hex"), known.dag_cbor_hex);
    const made = await signRecord(key, claimOf(known));
    assert.equal(Buffer.from(made).toString("base64"), known.record_b64);
  });
}

for (const [at, known] of cases("name_record_validate").entries()) {
  test(`record ${at} is ${known.valid ? "accepted" : `refused: ${known.error}`}`, async () => {
    const checked = checkRecord(parsePeerId(known.name ?? ""), base64(known.record_b64));
    if (!known.valid) {
      await assert.rejects(checked, { message: known.error });
      return;
    }
    const record = await checked;
    assert.equal(Buffer.from(record.value).toString(), known.value);
    assert.equal(record.validity, known.validity);
    assert.equal(record.sequence.toString(), known.sequence);
    assert.deepEqual(encodeRecord(record), Buffer.from(base64(known.record_b64)));
  });
}

for (const { a, b, winner, why } of cases("name_record_select")) {
  test(`the record with ${why} is better than another one`, () => {
    const better = compareRecords(base64(a), base64(b)) > 0 ? "a" : "b";
    assert.equal(better, winner);
    assert.equal(compareRecords(base64(b), base64(a)) > 0 ? "b" : "a", winner);
  });
}

for (const known of cases("name_derived_keys")) {
  test(`the keys of ${known.peer_id} equal those of go-ipfs`, () => {
    const id = parsePeerId(known.peer_id ?? "");
    assert.equal(Buffer.from(recordKey(id)).toString("hex"), known.routing_key_hex);
    assert.equal(Buffer.from(publicKeyKey(id)).toString("hex"), known.public_key_routing_key_hex);
    assert.equal(recordTopic(id), known.pubsub_topic);
    assert.equal(`/${publishedKey(id)}`, known.local_record_datastore_key);
  });
}

test("the sequence grows when the value changes, and only then", () => {
  for (const { stored, publish, sequence } of sections.name_publish_sequence.cases) {
    const last = stored === null ? undefined : claimOf(stored);
    assert.equal(nextSequence(last, Buffer.from(publish)).toString(), sequence);
  }
});

for (const form of [{ type: "ed25519" }, { type: "rsa", size: 2048 }]) {
  test(`a record signed by a key of ${form.type} is valid, and invalid once a byte of it is changed`, async () => {
    const key = await generateKey(form);
    const claim = {
      value: Buffer.from("/ipfs/bafkqaaa"),
      validity: formatTimestamp(timestampAfter(60_000)),
      sequence: 7n,
    };
    const bytes = await signRecord(key, { ...claim, ttl: 2n ** 62n + 1n });
    assert.equal((await checkRecord(key.id, bytes)).ttl, 2n ** 62n + 1n);
    const forged = encodeRecord({ ...decodeRecord(bytes), value: Buffer.from("/ipfs/bafkqaab") });
    await assert.rejects(checkRecord(key.id, forged), /did not match between protobuf and CBOR/);
    const other = await generateKey({ type: "ed25519" });
    await assert.rejects(checkRecord(other.id, bytes), /signature verification failed|did not match expected/);
    const late = (parseTimestamp(claim.validity) ?? 0n) + 1n;
    await assert.rejects(checkRecord(key.id, bytes, late), { message: "expired record" });
  });
}

test("bytes that are no record, or too long, are refused", async () => {
  const { id } = await generateKey({ type: "ed25519" });
  for (const bytes of [Uint8Array.of(0xff), Uint8Array.of(0x0a, 0x7f, 1), new Uint8Array(20_000)]) {
    await assert.rejects(checkRecord(id, bytes), { message: "record could not be unmarshalled" });
  }
});
