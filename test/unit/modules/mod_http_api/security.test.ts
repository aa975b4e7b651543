import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually } from "#test/support/eventually.ts";
import { rawExchange } from "#test/support/raw.ts";
import { type RpcHost, startRpc } from "./commands/support.ts";
import { replyOf } from "./support.ts";

const token = "open sesame";

let host: RpcHost;
before(async () => {
  host = await startRpc({ https_ports: [0], api_tokens: [token], api_hosts: ["node.example"] });
});
after(() => host?.stop());

/** Sends a request as raw bytes; `lines` are the header lines after the request line. */
async function exchange(secure: boolean, first: string, lines: readonly string[]) {
  const head = [first, ...lines, "Content-Length: 0", "Connection: close", "", ""].join("\r\n");
  return replyOf(await rawExchange(secure ? host.https : host.http, head, { tls: secure }));
}

const basic = (text: string) => `Authorization: Basic ${Buffer.from(text).toString("base64")}`;
const here = "Host: localhost";
const bearer = `Authorization: Bearer ${token}`;
const proxied = "X-Forwarded-For: 203.0.113.7";

const refused: [what: string, lines: readonly string[]][] = [
  ["a foreign Host", ["Host: evil.example"]],
  ["a foreign Host with the port of the API", ["Host: evil.example:5281"]],
  ["an address of the network as Host", ["Host: 192.0.2.1"]],
  ["a foreign Origin", [here, "Origin: http://evil.example"]],
  ["the Origin of a page from a file", [here, "Origin: null"]],
  ["a foreign Origin that knows the token", [here, "Origin: http://evil.example", bearer]],
  ["a foreign Referer", [here, "Referer: http://evil.example/page"]],
  ["a browser that does not say whose page it shows", [here, "User-Agent: Mozilla/5.0 (X11)"]],
  ["a page of another site that does not say which", [here, "Sec-Fetch-Site: cross-site"]],
  ["X-Forwarded-For", [here, proxied]],
  ["X-Forwarded-For of this machine", [here, "X-Forwarded-For: 127.0.0.1"]],
  ["X-Forwarded-Host", [here, "X-Forwarded-Host: localhost"]],
  ["X-Real-IP", [here, "X-Real-IP: 203.0.113.7"]],
  ["Forwarded", [here, 'Forwarded: for="[2001:db8::1]"']],
  ["Via", [here, "Via: 1.1 proxy"]],
  ["a wrong token", [here, "Authorization: Bearer open sesame!"]],
  ["a wrong token through a proxy", [here, proxied, "Authorization: Bearer x"]],
  ["an empty token through a proxy", [here, proxied, "Authorization: Bearer "]],
  ["a wrong password through a proxy", [here, proxied, basic("user:sesame")]],
  ["a token in the wrong scheme through a proxy", [here, proxied, `Authorization: Digest ${token}`]],
];

const allowed: [what: string, lines: readonly string[]][] = [
  ["localhost", [here]],
  ["a loopback address", ["Host: 127.0.0.1:1234"]],
  ["a name of the option api_hosts", ["Host: node.example"]],
  ["the right token through a proxy", ["Host: evil.example", proxied, bearer]],
  ["the right password through a proxy", ["Host: www.example.org", proxied, basic(`user:${token}`)]],
  ["a page of the API itself", [here, "Sec-Fetch-Site: same-origin"]],
];

for (const secure of [false, true]) {
  describe(secure ? "the HTTPS port" : "the HTTP port", () => {
    for (const [what, lines] of refused) {
      test(`the port refuses ${what}`, async () => {
        for (const path of ["/api/v0/id", "/api/v0/no/such", "/api/v0/config/show"]) {
          const { status, body, headers } = await exchange(secure, `POST ${path} HTTP/1.1`, lines);
          assert.equal(status, 403, body);
          assert.match(body, /^403 - Forbidden/);
          assert.equal(headers["access-control-allow-origin"], undefined);
          assert.ok(!body.includes("PeerID"));
        }
      });
    }

    for (const [what, lines] of allowed) {
      test(`the port allows ${what}`, async () => {
        const { status, body } = await exchange(secure, "POST /api/v0/id HTTP/1.1", lines);
        assert.equal(status, 200, body);
        assert.equal(JSON.parse(body).ProtocolVersion, "ipfs/0.1.0");
      });
    }

    test("the port uses the name in the request line, not the Host header", async () => {
      const target = "http://evil.example/api/v0/id";
      assert.equal((await exchange(secure, `POST ${target} HTTP/1.1`, [here])).status, 403);
    });

    test("the port runs nothing by GET, whoever calls", async () => {
      const lines = ["Host: evil.example", proxied, bearer];
      const { status, headers } = await exchange(secure, "GET /api/v0/shutdown HTTP/1.1", lines);
      assert.deepEqual([status, headers.allow], [405, "OPTIONS, POST"]);
    });

    test("the port refuses requests with two Host headers or none", async () => {
      for (const lines of [[], [here, "Host: evil.example"]]) {
        assert.equal((await exchange(secure, "POST /api/v0/id HTTP/1.1", lines)).status, 400);
      }
    });
  });
}

test("tokens and values in queries appear in no log", async () => {
  await using logged = await startRpc({
    modules_enabled: ["http", "http_log", "http_api"],
    http_log: true,
    http_log_file: "requests.log",
    http_log_query: "full",
    api_tokens: [token],
  });
  for (const authorization of [bearer, "Authorization: Bearer wrong-guess"]) {
    const lines = [here, authorization, "Content-Length: 0"];
    const head = ["POST /api/v0/cat?arg=QmSecretPath HTTP/1.1", ...lines, "Connection: close", "", ""].join("\r\n");
    await rawExchange(logged.http, head);
  }
  const requests = async () => readFile(join(logged.folder, "requests.log"), "utf8");
  await eventually("both requests are in the log", async () => (await requests()).split("/api/v0/cat").length >= 3);
  const written = `${await requests()}${logged.log()}`;
  for (const secret of [token, "wrong-guess", "QmSecretPath"]) assert.ok(!written.includes(secret), written);
});

const external = Object.values(networkInterfaces())
  .flat()
  .find((each) => each !== undefined && !each.internal && each.family === "IPv4")?.address;

test("an address other than loopback needs a token", {
  skip: external === undefined && "no such address",
}, async () => {
  await using open = await startRpc({
    http_interfaces: [external],
    api_tokens: [token],
    api_hosts: [external as string],
  });
  const call = (headers: Record<string, string>) =>
    fetch(`http://${external}:${open.http}/api/v0/version`, { method: "POST", headers }).then(({ status }) => status);
  assert.equal(await call({}), 403);
  assert.equal(await call({ authorization: "Bearer wrong" }), 403);
  assert.equal(await call({ authorization: `Bearer ${token}` }), 200);
});
