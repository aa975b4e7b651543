/**
 * Tests that no test depends on the date. Data that expires in the files of the tests either lies
 * in another century or is read with a test's clock. The same applies to dates in sources.
 */
import "reflect-metadata";
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Record as KadRecord } from "@libp2p/kad-dht";
import { X509CertificateGenerator } from "@peculiar/x509";
import { databases } from "#node/migration/from_go_ipfs/databases.ts";
import { signRecord } from "#node/network/ipns_record/sign.ts";
import { generateKey } from "#node/storage/keystore/key.ts";
import { madeAt } from "#test/fixtures/kubo/clock.ts";
import { unpack } from "#test/support/unpack.ts";
import { emptyFolder } from "#test/unit/modules/mod_node/storage/repo/support.ts";
import { type Expiry, expiriesIn, expiriesOf } from "./find.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));

/**
 * Data that expired before this time is expected to be expired. Data that expires after the second
 * time will outlive these tests.
 */
const LONG_AGO = Date.UTC(2020, 0);
const FAR_AHEAD = Date.UTC(2050, 0);
/** Sources may contain dates up to this day, which has passed. */
const PASSED = Date.UTC(2026, 10, 29);

/** Files with data that expires, each with the time to which its tests set the clock. */
const clocks: Readonly<Record<string, number>> = {
  "test/fixtures/kubo/everything.tar.gz": madeAt,
  "test/fixtures/kubo/pebble.tar.gz": madeAt,
  "test/fixtures/kubo/leveldb.tar.gz": madeAt,
};

/** Files with names that must be expired, and are. */
const expired: readonly string[] = ["test/fixtures/vectors/level-0.43.json"];

const isBinary = (file: string) => /\.(gz|car)$/.test(file);

async function expiriesInArchive(t: TestContext, file: string): Promise<Expiry[]> {
  const found: Expiry[] = [];
  const folder = await emptyFolder(t);
  await unpack(new URL(`file://${join(root, file)}`), join(folder, "content"));
  const entries = await readdir(join(folder, "content"), { recursive: true, withFileTypes: true });
  const folders = [
    join(folder, "content"),
    ...entries.filter((each) => each.isDirectory()).map(({ parentPath, name }) => join(parentPath, name)),
  ];
  for (const each of folders) {
    const names = await readdir(each);
    for (const [engine, { isThere, read }] of Object.entries(databases)) {
      if (!isThere(names) || (engine === "levelds" && isPebbleToo(names))) continue;
      await read(each, join(folder, "scratch"), async (database) => {
        for await (const [, value] of database.iterator({ gte: "", lt: "\uffff" })) found.push(...expiriesOf(value));
      });
    }
  }
  for (const { parentPath, name } of entries.filter((each) => each.isFile())) {
    found.push(...expiriesIn(readFileSync(join(parentPath, name), "latin1")).filter(({ kind }) => kind !== "date"));
  }
  return found;
}

/**
 * Whether a folder with these files is a Pebble database. For such a folder, `isThere` of LevelDB
 * returns true as well.
 */
const isPebbleToo = (names: readonly string[]) => names.some((name) => name.startsWith("marker."));

/** Returns what is wrong with data that expires in a file, or undefined. */
function faultOf(file: string, { kind, until }: Expiry): string | undefined {
  if (until < LONG_AGO || until >= FAR_AHEAD) return undefined;
  const what = `${file}: a ${kind} until ${new Date(until).toISOString()}`;
  if (kind === "date") {
    return until <= PASSED ? undefined : `${what}: set a clock, and take a year from 2050 on`;
  }
  if (expired.includes(file) && until <= PASSED) return undefined;
  const now = clocks[file];
  if (now === undefined) return `${what}: let the test make it, or set a clock and name it here`;
  return until > now ? undefined : `${what}: it has expired by the clock of its tests`;
}

test("nothing in the files of the tests expires while the tests are in use", async (t) => {
  const faults = new Set<string>();
  let found = 0;
  for (const file of globSync("test/**/*", { cwd: root, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const path = join(file.parentPath, file.name).slice(root.length);
    const isArchive = path.endsWith(".gz");
    const text = isArchive ? "" : readFileSync(join(root, path), isBinary(path) ? "latin1" : "utf8");
    for (const each of isArchive ? await expiriesInArchive(t, path) : expiriesIn(text)) {
      found += 1;
      const fault = faultOf(path, each);
      if (fault !== undefined) faults.add(fault);
    }
  }
  assert.deepEqual([...faults].sort(), []);
  assert.ok(found > 20, `only ${found} were found`);
});

test("every kind of expiring data is found, in any encoding", async () => {
  const until = Date.UTC(2091, 4, 6);
  const name = await signRecord(await generateKey({ type: "ed25519" }), {
    value: Buffer.from("/ipfs/bafkqaaa"),
    validity: new Date(until).toISOString(),
    sequence: 0n,
    ttl: 0n,
  });
  const inDht = new KadRecord(Buffer.from("/ipns/x"), name, new Date(0)).serialize();
  const keys = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const signing = { name: "ECDSA", hash: "SHA-256" };
  const notAfter = new Date(until);
  const made = await X509CertificateGenerator.createSelfSigned({
    keys,
    notAfter,
    name: "CN=a",
    signingAlgorithm: signing,
  });
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
  const texts: Readonly<Record<string, readonly [text: string, kind: Expiry["kind"]]>> = {
    "a name": [base64(name), "name"],
    "a name in hexadecimal digits": [Buffer.from(name).toString("hex"), "name"],
    "a name with a prefix that says how it is encoded": [`u${Buffer.from(name).toString("base64url")}`, "name"],
    "a name in a record of a DHT": [base64(inDht), "name"],
    "a certificate": [made.toString("pem"), "certificate"],
    "a certificate in a string of a source": [JSON.stringify(made.toString("pem")), "certificate"],
    "a certificate without its frame": [base64(new Uint8Array(made.rawData)), "certificate"],
    "a token": [`Bearer ${part({ alg: "none" })}.${part({ exp: until / 1000 })}.`, "token"],
    "a moment": ["since 2091-05-06T00:00:00.000Z", "date"],
    "a day": ["2091-05-06", "date"],
    "a cookie": ["a=b; Expires=Sun, 06 May 2091 00:00:00 GMT", "date"],
    "a date of a program": ["Date.UTC(2091, 4, 6)", "date"],
  };
  for (const [what, [text, kind]] of Object.entries(texts)) {
    assert.ok(
      [...expiriesIn(text)].some((each) => each.kind === kind && each.until === until),
      what,
    );
  }
});

test("data that expires soon is a fault, unless its test sets the clock to an earlier time", () => {
  const name = (until: number) => ({ kind: "name", until }) as const;
  const archive = "test/fixtures/kubo/pebble.tar.gz";
  assert.equal(faultOf(archive, name(madeAt + 1)), undefined);
  assert.match(faultOf(archive, name(madeAt - 1)) ?? "", /expired by the clock/);
  assert.match(faultOf("test/x.json", name(PASSED - 1)) ?? "", /^test\/x\.json: a name until 2026-11-28/);
  assert.match(faultOf("test/x.ts", { kind: "date", until: PASSED + 1 }) ?? "", /set a clock/);
  assert.equal(faultOf("test/x.ts", { kind: "date", until: PASSED - 1 }), undefined);
  assert.equal(faultOf("test/x.json", name(FAR_AHEAD)), undefined);
});
