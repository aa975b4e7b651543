import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { decode, encode } from "@dnsquery/dns-packet";
import { startGatewayWith } from "../support.ts";

/** A DNS-over-HTTPS resolver on loopback, and the names that were looked up. */
async function resolver(records: (name: string) => string | undefined) {
  const lookups: string[] = [];
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? "", "http://x").searchParams.get("dns") ?? "";
    const { questions = [] } = decode(Buffer.from(query, "base64url"));
    const name = questions[0]?.name ?? "";
    lookups.push(name);
    const record = records(name);
    const txtRecords = record === undefined ? [] : [{ type: "TXT" as const, name, data: [record] }];
    response.end(encode({ type: "response", questions, answers: txtRecords }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { lookups, url, [Symbol.asyncDispose]: async () => void server.close() };
}

test("domains with a DNSLink are websites, links may lead to other domains, and each domain is looked up once", async () => {
  let site = "";
  await using dns = await resolver((name) => {
    if (name === "_dnslink.site.test") return `dnslink=/ipfs/${site}`;
    if (name === "_dnslink.below.test") return "dnslink=/ipns/site.test/sub";
    const [, at] = /^_dnslink\.n(\d+)\.test$/.exec(name) ?? [];
    return at === undefined ? undefined : `dnslink=/ipns/n${Number(at) + 1}.test`;
  });
  await using host = await startGatewayWith(
    async (node) => {
      await node.lowLevel.repo.config.set("DNS.Resolvers", () => ({ "test.": dns.url }));
      const files = [
        { path: "site/index.html", content: "home" },
        { path: "site/sub/a.txt", content: "in a" },
      ];
      for await (const { path, cid } of node.addAll(files, { cidVersion: 1 })) if (path === "site") site = String(cid);
    },
    { gateway_dnslink: true },
  );
  const ask = (name: string, path: string) => host.ask(path, { host: name });
  const times = (name: string) => dns.lookups.filter((each) => each === `_dnslink.${name}`).length;

  for (const name of ["site.test", "SITE.test:8080", "site.test."]) assert.equal((await ask(name, "/")).body, "home");
  assert.equal(times("site.test"), 1);
  const { body, headers } = await ask("below.test", "/a.txt");
  assert.deepEqual(
    [body, headers["x-ipfs-path"], headers["cache-control"]],
    ["in a", "/ipns/below.test/a.txt", undefined],
  );
  const directory = await ask("site.test", "/sub");
  assert.deepEqual([directory.status, directory.headers.location], [301, "/sub/"]);

  const strange = await Promise.all(["/", "/x", `/ipfs/${site}/`].map((path) => ask("strange.test", path)));
  assert.deepEqual(
    strange.map(({ status }) => status),
    [404, 404, 200],
  );
  assert.equal(times("strange.test"), 1);

  const endless = await ask("n1.test", "/");
  assert.deepEqual([endless.status, times("n32.test"), times("n33.test")], [400, 1, 0]);

  const before = dns.lookups.length;
  for (const name of ["127.0.0.1", "[::1]", "localhost", "a.localhost"]) await ask(name, "/");
  assert.equal(dns.lookups.length, before);
});
