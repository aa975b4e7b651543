import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  filled,
  MAX_RULES_BYTES,
  matchRules,
  parseRules,
  RulesFault,
} from "#modules/mod_http_gateway/redirects/rules.ts";
import { startGatewayWith } from "./support.ts";

const led = (rules: string, path: string) => {
  const match = matchRules(parseRules(rules), path.split("/").slice(1));
  return match && `${match.rule.status} ${filled(match.rule.to, match.values, String)}`;
};

describe("the rules of a website", () => {
  test("rules are lines of fields with blanks, tabs and comments, and the first match wins", () => {
    const rules = "# all\r\n\n/a\t /b\r\n/a /c 302\n/x/:y/* /:y/:splat#:y 307 # why\n/d* /e 200";
    assert.equal(led(rules, "/a"), "301 /b");
    assert.equal(led(rules, "/x/1/2/3"), "307 /1/2/3#1");
    assert.equal(led(rules, "/x/1"), undefined);
    assert.equal(led(rules, "/done"), "200 /e");
    assert.equal(led("/:a/:ab /:ab/:a/:no/:", "/1/2"), "301 /2/1/:no/:");
    assert.equal(led("/a%20b/ /c", "/a b"), "301 /c");
    assert.equal(led("/* /index.html 200", "/any/where"), "200 /index.html");
  });

  test("an invalid rule makes the whole file invalid", () => {
    const wrong = [
      "a /b",
      "/a",
      "/a b",
      "/a /b 301!",
      "/a /b 418",
      "/a/*/b /c",
      "/:x/:x /b",
      "/:/ /b",
      "/a /b Country=x 302",
    ];
    for (const rule of [...wrong, "/a https://b.example/ 200", "/:splat/* /b", "/a javascript:alert(1)"]) {
      assert.throws(() => parseRules(`/ok /ok\n${rule}`), RulesFault, rule);
    }
  });

  test("matching does a bounded amount of work, whatever the file and the path contain", () => {
    const [stars, names] = ["/a*", "/:a/:b/:c/:d/:e/:f/:g/:h/x"].map((from) => {
      const line = `${from} /b\n`;
      return parseRules(line.repeat(MAX_RULES_BYTES / line.length));
    });
    const path = Array.from({ length: 4000 }, () => "b");
    const [read, count] = counted(path);
    assert.equal(matchRules(stars ?? [], read), undefined);
    assert.equal(matchRules(names ?? [], counted(path)[0]), undefined);
    assert.ok(count() <= MAX_RULES_BYTES, `${count()} segments`);
    const [rule] = parseRules(`/:a /${":a".repeat(30_000)}`);
    assert.throws(() => filled(rule?.to ?? "", new Map([["a", "x".repeat(8000)]]), String), /more than 16384/);
    let looks = 0;
    class Counted extends Map<string, string> {
      override has(name: string): boolean {
        looks += 1;
        return super.has(name);
      }
    }
    const values = new Counted(Array.from({ length: 7000 }, (_, at) => [at.toString(36), "x"]));
    assert.equal(filled(":!".repeat(7000), values, String).length, 14_000);
    assert.ok(looks <= 7000 * 3, `${looks} names`);
  });
});

/** Returns the path, and a function that returns how often its segments were read. */
function counted(path: readonly string[]): readonly [readonly string[], () => number] {
  let looks = 0;
  const read = new Proxy(path, {
    get(target, name) {
      if (typeof name === "string" && /^\d+$/.test(name)) looks += 1;
      return Reflect.get(target, name);
    },
  });
  return [read, () => looks];
}

test("rules only apply to missing paths of websites", async () => {
  let site = "";
  let broken = "";
  await using host = await startGatewayWith(async (node) => {
    const rules = [
      "/old/:name /new/:name?from=:name&own=1#top 302",
      "/away/* https://example.net/:splat 308",
      "/app/* /index.html 200",
      "/gone/* /gone.html 410",
      "/lost/* /nothing.html 404",
      "/dir /docs 200",
    ];
    const files = [
      { path: "site/_redirects", content: rules.join("\n") },
      { path: "site/index.html", content: "<!doctype html>home" },
      { path: "site/gone.html", content: Buffer.alloc(600_000, "g") },
      { path: "site/docs/index.html", content: "<!doctype html>docs" },
      { path: "broken/_redirects", content: "/a /b 418" },
      { path: "broken/there.txt", content: "there" },
    ];
    for await (const { path, cid } of node.addAll(files, { cidVersion: 1 })) {
      if (path === "site") site = String(cid);
      if (path === "broken") broken = String(cid);
    }
  });
  const ask = (path: string, headers = {}, method = "GET") =>
    host.ask(path, { host: `${site}.ipfs.localhost`, ...headers }, method);
  const location = async (path: string) => (await ask(path)).headers.location;

  assert.equal(
    await location("/old/a%2520b%0d%0ax%3Fy?own=2&z=%26"),
    "/new/a%2520b%0D%0Ax%3Fy?from=a%2520b%0D%0Ax%3Fy&own=2&z=%26#top",
  );
  assert.equal(await location("/away/%5Cevil.example//x"), "https://example.net/%5Cevil.example/x");
  const app = await ask("/app/x");
  assert.deepEqual(
    [app.status, app.body, app.headers["x-ipfs-path"]],
    [200, "<!doctype html>home", `/ipfs/${site}/app/x`],
  );
  assert.equal((await ask("/app/x", { "if-none-match": app.headers.etag as string })).status, 304);
  assert.equal((await ask("/dir")).body, "<!doctype html>docs");

  const gone = await ask("/gone/x", { range: "bytes=0-1" });
  assert.deepEqual([gone.status, gone.headers["content-type"], gone.body.length], [410, "text/html", 600_000]);
  const head = await ask("/gone/x", {}, "HEAD");
  assert.deepEqual([head.status, head.headers["content-length"], head.body], [410, "600000", ""]);
  const lost = await ask("/lost/x");
  assert.deepEqual(
    [lost.status, /_redirects leads to \/nothing\.html, which does not exist/.test(lost.body)],
    [404, true],
  );

  assert.equal((await ask("/app/x?format=raw")).status, 404);
  assert.equal((await host.ask(`/ipfs/${site}/app/x`)).status, 404);
  const other = { host: `${broken}.ipfs.localhost` };
  const fault = await host.ask("/a", other);
  assert.deepEqual([fault.status, /could not parse _redirects: line 1: .*418/.test(fault.body)], [500, true]);
  assert.equal((await host.ask("/there.txt", other)).body, "there");
});
