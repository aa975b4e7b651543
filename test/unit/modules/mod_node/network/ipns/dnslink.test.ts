import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { DEFAULT_MAX_DEPTH, isDomain, parseDnslink, resolveDnslink } from "#node/network/ipns/dnslink.ts";

const fixture = new URL("../../../../../fixtures/vectors/network.json", import.meta.url);
const { dnslink_resolution: resolution, dnslink_entries: entries } = JSON.parse(readFileSync(fixture, "utf8")).sections;
const records: Readonly<Record<string, readonly string[]>> = resolution.txt;

const lookUp = async (name: string) => {
  const found = records[name];
  if (found === undefined) throw new Error(`no such host: ${name}`);
  return found;
};
/** The lookup reports missing names as missing. */
const lookUpAll = async (name: string) => records[name] ?? [];

for (const { name, depth, path, error } of resolution.cases) {
  test(`${name} with ${depth} steps leads to ${path ?? error}`, async () => {
    const resolving = resolveDnslink(name, lookUpAll, { depth });
    if (path === undefined || path === null) {
      await assert.rejects(resolving, (thrown: Error) => thrown.message.startsWith(error));
      return;
    }
    assert.deepEqual(await resolving, { path, limited: error !== null });
  });
}

for (const { txt, ok, path } of entries.cases) {
  test(`the record ${txt} is ${ok ? "a" : "no"} link`, () => {
    const link = parseDnslink(txt);
    assert.equal(link !== undefined, ok);
    if (path !== undefined) assert.equal(link, path);
  });
}

test("an invalid domain is refused without a lookup", async () => {
  const ask = () => assert.fail("asked");
  for (const name of ["", "/ipns/x.y", "a..b", `${"a".repeat(64)}.com`, `${"a.".repeat(200)}com`]) {
    await assert.rejects(resolveDnslink(name, ask, { depth: DEFAULT_MAX_DEPTH }), {
      message: `not a valid domain name: ${name.split("/")[0]}`,
    });
  }
  assert.ok(isDomain("a b") && isDomain("x.") && !isDomain("."));
});

test("a failed lookup and a missing link give different errors", async () => {
  await assert.rejects(resolveDnslink("nowhere.example", lookUp, { depth: 1 }), { message: "could not resolve name" });
  await assert.rejects(resolveDnslink("nowhere.example/a", lookUpAll, { depth: 1 }), {
    message: 'could not resolve name: "a" is missing a DNSLink record (https://docs.ipfs.io/concepts/dnslink/)',
  });
});

test("a link at _dnslink is used without waiting for that of the domain itself", async () => {
  const link = "dnslink=/ipfs/bafkqaaa";
  const never = new Promise<never>(() => {});
  const slow = (name: string) => (name.startsWith("_dnslink.") ? Promise.resolve([link]) : never);
  assert.deepEqual(await resolveDnslink("a.example", slow, { depth: 1 }), { path: "/ipfs/bafkqaaa", limited: false });
});
