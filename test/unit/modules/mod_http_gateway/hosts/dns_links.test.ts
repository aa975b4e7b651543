import assert from "node:assert/strict";
import { test } from "node:test";
import { DnsLinks } from "#modules/mod_http_gateway/hosts/dns_links.ts";
import type { NodeModule } from "#node/index.ts";

/** Look-ups that were made, and what ends them. */
function resolver(answer: (domain: string) => Promise<string>) {
  const asked: string[] = [];
  const find = async (domain: string) => {
    asked.push(domain);
    return { path: await answer(domain), limited: false };
  };
  const node = { isOpen: true, lowLevel: { names: { find } } } as unknown as NodeModule;
  return { asked, links: new DnsLinks(node) };
}

test("a link is looked up once for all who ask, and so is that there is none", async () => {
  const { asked, links } = resolver(async (domain) => {
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
  assert.deepEqual(asked, ["a.example", "none.example"]);
});

test("of many strange hosts only some are looked up at a time, and few are remembered", async () => {
  let end = () => {};
  const ended = new Promise<void>((resolve) => void (end = resolve));
  const { asked, links } = resolver(() => ended.then(() => "/ipfs/x"));
  const found = Array.from({ length: 500 }, (_, at) => links.has(`${at}.example`));
  assert.equal(found.filter((each) => each === false).length, 500 - 64);
  end();
  await Promise.all(found);
  assert.equal(asked.length, 64);
  for (let at = 0; at < 1100; at += 1) await links.has(`${at}.example`);
  const before = asked.length;
  await links.has("1.example");
  await links.has("1099.example");
  assert.equal(asked.length, before + 1);
});
