import assert from "node:assert/strict";
import { test } from "node:test";
import { DnsLinks } from "#modules/mod_http_gateway/hosts/dns_links.ts";
import type { NodeModule } from "#node/index.ts";

/** Returns links whose lookups call `resolve`, and the list of domains that were looked up. */
function resolver(resolve: (domain: string) => Promise<string>) {
  const lookups: string[] = [];
  const find = async (domain: string) => {
    lookups.push(domain);
    return { path: await resolve(domain), limited: false };
  };
  const node = { isOpen: true, lowLevel: { names: { find } } } as unknown as NodeModule;
  return { lookups, links: new DnsLinks(node) };
}

test("concurrent callers share one lookup, and a missing link is cached, too", async () => {
  const { lookups, links } = resolver(async (domain) => {
    if (domain === "none.example") throw new Error("no link");
    return "/ipfs/x";
  });
  assert.deepEqual(await Promise.all([links.has("a.example"), links.has("a.example"), links.find("a.example")]), [
    true,
    true,
    "/ipfs/x",
  ]);
  assert.equal(await links.has("none.example"), false);
  assert.equal(links.has("none.example"), false, "at once");
  await assert.rejects(links.find("none.example"), /no link/);
  assert.deepEqual(lookups, ["a.example", "none.example"]);
});

test("64 lookups run at the same time, other hosts count as having no link, and the cache is limited", async () => {
  let end = () => {};
  const ended = new Promise<void>((resolve) => void (end = resolve));
  const { lookups, links } = resolver(() => ended.then(() => "/ipfs/x"));
  const found = Array.from({ length: 500 }, (_, at) => links.has(`${at}.example`));
  assert.equal(found.filter((each) => each === false).length, 500 - 64);
  end();
  await Promise.all(found);
  assert.equal(lookups.length, 64);
  for (let at = 0; at < 1100; at += 1) await links.has(`${at}.example`);
  const before = lookups.length;
  await links.has("1.example");
  await links.has("1099.example");
  assert.equal(lookups.length, before + 1);
});
