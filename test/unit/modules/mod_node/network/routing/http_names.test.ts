/** Reads records of names from an HTTP router, and puts them to it. */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { publicKeyKey, recordKey } from "#node/network/ipns_record/keys.ts";
import { decodeRecord, encodeRecord } from "#node/network/ipns_record/record.ts";
import { signRecord } from "#node/network/ipns_record/sign.ts";
import { formatTimestamp, timestampAfter } from "#node/network/ipns_record/timestamp.ts";
import { generateKey, type Key } from "#node/storage/keystore/key.ts";
import { errorsIn, fakeRouter, outcome, soon } from "./support.ts";

const RECORD_TYPE = "application/vnd.ipfs.ipns-record";
const HOUR_MS = 3_600_000;

const newKey = (): Promise<Key> => generateKey({ type: "ed25519" });
const signed = (key: Key, lifetime = HOUR_MS) =>
  signRecord(key, {
    value: Buffer.from("/ipfs/bafkqaaa"),
    validity: formatTimestamp(timestampAfter(lifetime)),
    sequence: 1n,
    ttl: 0n,
  });
const responseOf = (bytes: Uint8Array, type = RECORD_TYPE) =>
  new Response(Uint8Array.from(bytes), { headers: { "content-type": type } });

let key: Key;
let record: Uint8Array;
let name: Uint8Array;
before(async () => {
  key = await newKey();
  record = await signed(key);
  name = recordKey(key.id);
});

test("a record is requested by its name in base36, and returned if it is signed", async () => {
  const { router, requests } = fakeRouter(() => responseOf(record));
  const { events, failure } = await outcome(router.search(name, soon()));
  assert.equal(failure, undefined);
  assert.deepEqual(
    events.map(({ value }) => Buffer.from(value ?? [])),
    [Buffer.from(record)],
  );
  assert.match(requests[0]?.url.pathname ?? "", /^\/routing\/v1\/ipns\/k51[a-z0-9]+$/);
  assert.equal(requests[0]?.init.headers.accept, RECORD_TYPE);
});

describe("responses without a record", () => {
  for (const [what, response] of [
    ["with another type", () => responseOf(record, "text/plain; charset=utf-8")],
    ["with status 404", () => new Response("", { status: 404 })],
  ] as const) {
    test(what, async () => {
      assert.deepEqual(await outcome(fakeRouter(response).router.search(name, soon())), { events: [] });
    });
  }
});

describe("a record that is not valid is a failure of the router", () => {
  const damaged = () => record.with(-1, 255 - (record.at(-1) ?? 0));
  const cases: readonly [what: string, bytes: () => Promise<Uint8Array> | Uint8Array, reason: RegExp][] = [
    ["of another name", async () => signed(await newKey()), /signature verification failed/],
    ["whose bytes were changed", damaged, /router https:\/\/router.example: /],
    ["that has expired", () => signed(key, -HOUR_MS), /expired record/],
    ["that is no record", () => Buffer.from("<html>"), /could not be unmarshalled/],
    ["that is too large", () => Buffer.alloc(1 << 20), /could not be unmarshalled/],
    [
      "signed by version 1 alone",
      () => encodeRecord({ ...decodeRecord(record), signatureV2: new Uint8Array(), data: new Uint8Array() }),
      /no signature of version 2/,
    ],
  ];
  for (const [what, bytes, reason] of cases) {
    test(what, async () => {
      const { router } = fakeRouter(async () => responseOf(await bytes()));
      const { events, failure } = await outcome(router.search(name, soon()));
      assert.match(failure ?? "", reason);
      assert.deepEqual(errorsIn(events), [failure]);
      assert.equal(events.length, 1);
    });
  }
});

test("a record is put unchanged, and a refusal of the router is an error", async () => {
  let status = 200;
  const { router, requests } = fakeRouter(() => new Response("bad record", { status }));
  assert.deepEqual(await outcome(router.put({ key: name, value: record }, soon())), { events: [] });
  const [{ url, init } = assert.fail()] = requests;
  assert.equal(init.method, "PUT");
  assert.match(url.pathname, /^\/routing\/v1\/ipns\/k51/);
  assert.equal(init.headers["content-type"], RECORD_TYPE);
  assert.deepEqual(Buffer.from(init.body as Uint8Array), Buffer.from(record));
  for (status of [400, 404]) {
    const { failure } = await outcome(router.put({ key: name, value: record }, soon()));
    assert.equal(failure, `router https://router.example: status ${status}`);
  }
});

test("public keys are neither requested nor put", async () => {
  const { router, requests } = fakeRouter(() => assert.fail("asked"));
  const other = publicKeyKey(key.id);
  assert.deepEqual(await outcome(router.search(other, soon())), { events: [] });
  assert.deepEqual(await outcome(router.put({ key: other, value: record }, soon())), { events: [] });
  assert.deepEqual(requests, []);
});
