import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Tokens } from "#core/types.ts";
import type { ConfiguredHeaders } from "#modules/mod_http_api/http/cors.ts";
import { tokensFrom } from "#modules/mod_http_api/http/tokens.ts";
import { type Commands, readCommand, value } from "#modules/mod_http_api/rpc/command.ts";
import { type ApiHost, type AskOptions, ask, startApi } from "../support.ts";

const command = readCommand({ help: "x", returns: value("string"), run: () => "in" });
const commands: Commands = {
  version: command,
  ls: readCommand({
    help: "x",
    arguments: [{ name: "p", help: "x" }],
    returns: value("string"),
    run: () => "in",
  }),
};

let configured: ConfiguredHeaders = {};
let open: ApiHost;
let guarded: ApiHost;
/** This host trusts forwarding headers from any client on loopback. */
let proxied: ApiHost;

before(async () => {
  const tokens = tokensFrom({ everywhere: {}, "some paths": { paths: ["/api/v0/ls"] }, "user:word": null });
  const headers = () => configured;
  open = await startApi([commands], { headers, hosts: new Set(["node.example"]) });
  guarded = await startApi([commands], { headers, tokens });
  proxied = await startApi([commands], { headers, tokens }, { trusted_proxies: ["127.0.0.1"] });
});
after(() => Promise.all([open, guarded, proxied].map((host) => host?.stop())));

type Expected = readonly [
  status: number,
  body?: string | undefined,
  headers?: Readonly<Record<string, string | undefined>>,
];

async function expect(host: ApiHost, path: string, options: AskOptions, [status, body, headers = {}]: Expected) {
  const reply = await ask(host.http, path, options);
  assert.equal(reply.status, status, `${reply.status} ${reply.body}`);
  if (body !== undefined) assert.equal(reply.body, body);
  for (const [name, wanted] of Object.entries(headers)) assert.equal(reply.headers[name], wanted, name);
}

const origin = () => `http://127.0.0.1:${open.http}`;
const forbidden = "403 - Forbidden\n";
const inside = '"in"\n';

describe("the order of refusals", () => {
  const none = { "access-control-allow-origin": undefined };
  const evil = { Origin: "http://evil.example" };
  const cases: [what: string, path: string, options: AskOptions, expected: Expected][] = [
    [
      "GET anywhere is 405, whoever asks",
      "no/such",
      { method: "GET", headers: evil },
      [405, "405 - Method Not Allowed\n", { allow: "OPTIONS, POST", vary: "Origin", server: undefined, ...none }],
    ],
    ["HEAD", "version", { method: "HEAD" }, [405, "", { "content-length": "25" }]],
    ["PROPFIND", "version", { method: "PROPFIND" }, [405]],
    [
      "a stranger's page is 403 even where nothing is",
      "no/such",
      { headers: evil },
      [403, forbidden, { vary: "Origin", ...none }],
    ],
    [
      "nothing there",
      "no/such",
      {},
      [
        404,
        "404 page not found\n",
        {
          vary: "Origin",
          server: undefined,
          "x-content-type-options": "nosniff",
          "content-type": "text/plain; charset=utf-8",
          "content-length": "19",
        },
      ],
    ],
    [
      "a preflight on nothing",
      "no/such",
      { method: "OPTIONS", headers: { ...evil, "Access-Control-Request-Method": "POST" } },
      [200, "", { "content-length": "0", ...none }],
    ],
    ["OPTIONS", "no/such", { method: "OPTIONS" }, [204, "", { allow: "OPTIONS, POST", vary: "Origin" }]],
    [
      "another version of the client",
      "ls",
      { headers: { "User-Agent": "/go-ipfs/0.8.0/" } },
      [400, "api version mismatch (/go-ipfs/0.9.0/ != /go-ipfs/0.8.0/)\n", { vary: undefined }],
    ],
    [
      "another version, which asks for ours",
      "version",
      { headers: { "User-Agent": "/go-ipfs/0.8.0/" } },
      [200, inside],
    ],
    ["our version", "ls", { headers: { "User-Agent": "/go-ipfs/0.9.0/" } }, [200, inside]],
    ["two slashes", "/api/v0//ls?arg=a%2F", {}, [301, "", { location: "/api/v0/ls?arg=a%2F", vary: undefined }]],
    [
      "dots",
      "/api/v0/files/../ls",
      { headers: { "User-Agent": "/go-ipfs/0.8.0/" } },
      [301, "", { location: "/api/v0/ls" }],
    ],
    ["escaped dots", "/api/v0/files/%2e%2e/ls", {}, [301, "", { location: "/api/v0/ls" }]],
    ["no slash behind the prefix", "/api/v0", {}, [301, "", { location: "/api/v0/", "content-length": "0" }]],
    [
      "by GET with a line for people",
      "/api/v0",
      { method: "GET" },
      [301, '<a href="/api/v0/">Moved Permanently</a>.\n\n'],
    ],
    ["the prefix alone", "/api/v0/", {}, [404]],
    ["an escaped slash parts components", "ls/a%2Fb", {}, [404]],
  ];
  for (const [what, path, options, expected] of cases) test(what, () => expect(open, path, options, expected));
});

describe("web pages", () => {
  const allowed = () => ({ Origin: origin() });
  const cases: [what: string, headers: () => Record<string, string>, expected: number][] = [
    ["of the API's own address", allowed, 200],
    ["of localhost by another scheme", () => ({ Origin: `https://localhost:${open.http}` }), 200],
    ["of another port", () => ({ Origin: "http://127.0.0.1:1" }), 403],
    ["in other letters", () => ({ Origin: origin().toUpperCase() }), 403],
    ["null", () => ({ Origin: "null" }), 403],
    ["none", () => ({ Origin: "" }), 200],
    ["named by the referer", () => ({ Referer: `${origin()}/webui?x` }), 200],
    ["named by the referer, strangers", () => ({ Referer: "http://evil.example/" }), 403],
    ["named by a referer that is none", () => ({ Referer: "x" }), 403],
    ["that do not say whose", () => ({ "User-Agent": "Mozilla/5.0" }), 403],
    ["of a desktop application", () => ({ "User-Agent": "Mozilla/5.0 Electron/9" }), 200],
    ["of another site without origin", () => ({ "Sec-Fetch-Site": "cross-site" }), 403],
    ["of another site that is listed", () => ({ ...allowed(), "Sec-Fetch-Site": "cross-site" }), 200],
    ["of this site", () => ({ "Sec-Fetch-Site": "same-origin" }), 200],
  ];
  for (const [what, headers, status] of cases) {
    test(`${what}: ${status}`, () =>
      expect(open, "version", { headers: headers() }, [status, status === 200 ? inside : forbidden]));
  }
});

test("if tokens are configured, a page of another origin learns how to be allowed", async () => {
  const page = { Origin: "http://app.example", Authorization: "Bearer everywhere" };
  const explanation =
    "403 - Forbidden: pages of other origins need an entry in API.HTTPHeaders.Access-Control-Allow-Origin of the node's " +
    "configuration, whatever token they send\n";
  await expect(guarded, "version", { headers: page }, [403, explanation]);
  configured = { "Access-Control-Allow-Origin": ["http://app.example"] };
  try {
    await expect(guarded, "version", { headers: page }, [200, inside]);
  } finally {
    configured = {};
  }
});

describe("origins that may read a response", () => {
  const grant = (value: string | undefined) => ({ "access-control-allow-origin": value });
  const cases: [what: string, api: ConfiguredHeaders, options: () => AskOptions, expected: () => Expected][] = [
    ["an origin of the defaults", {}, () => ({ headers: { Origin: origin() } }), () => [200, inside, grant(origin())]],
    [
      "any origin",
      { "Access-Control-Allow-Origin": ["*"] },
      () => ({ headers: { Origin: "http://a" } }),
      () => [200, inside, grant("*")],
    ],
    [
      "a listed one with credentials",
      { "Access-Control-Allow-Origin": ["http://a"], "Access-Control-Allow-Credentials": ["TRUE"] },
      () => ({ headers: { Origin: "http://a" } }),
      () => [200, inside, { ...grant("http://a"), "access-control-allow-credentials": "true" }],
    ],
    [
      "the port of the API",
      { "Access-Control-Allow-Origin": ["http://a:<port>"] },
      () => ({ headers: { Origin: `http://a:${open.http}` } }),
      () => [200, inside, grant(`http://a:${open.http}`)],
    ],
    [
      "one that fits a wildcard reads its refusal",
      { "access-control-allow-origin": ["http://*.example"] },
      () => ({ headers: { Origin: "http://b.example" } }),
      () => [403, forbidden, grant("http://b.example")],
    ],
    [
      "one in other letters, too",
      {},
      () => ({ headers: { Origin: origin().toUpperCase() } }),
      () => [403, forbidden, grant(origin().toUpperCase())],
    ],
    [
      "a method that is not allowed",
      {},
      () => ({ method: "GET", headers: { Origin: origin() } }),
      () => [405, undefined, grant(undefined)],
    ],
    [
      "a method that is",
      { "Access-Control-Allow-Methods": ["get"] },
      () => ({ method: "GET", headers: { Origin: origin() } }),
      () => [405, undefined, grant(origin())],
    ],
  ];
  for (const [what, api, options, expected] of cases) {
    test(what, async () => {
      configured = api;
      await expect(open, "version", options(), expected()).finally(() => {
        configured = {};
      });
    });
  }

  test("a preflight grants the requested method and headers", async () => {
    const preflight = (method: string, headers: string) => ({
      method: "OPTIONS",
      headers: { Origin: origin(), "Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers },
    });
    const granted = {
      ...grant(origin()),
      "access-control-allow-methods": "POST",
      vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
    };
    await expect(open, "x", preflight("post", "content-type, x-REQUESTED-with"), [
      200,
      "",
      { ...granted, "access-control-allow-headers": "Content-Type, X-Requested-With" },
    ]);
    await expect(open, "x", preflight("POST", ""), [
      200,
      "",
      { ...granted, "access-control-allow-headers": undefined },
    ]);
    await expect(open, "x", preflight("DELETE", ""), [200, "", grant(undefined)]);
    await expect(open, "x", preflight("POST", "x-other"), [200, "", grant(undefined)]);
    await expect(open, "x", preflight("POST", "authorization"), [200, "", grant(undefined)]);
    // Applies wherever a token may grant access, of the option or of the server.
    const serverTokens = { identify: () => undefined } as unknown as Tokens;
    await using tokened = await startApi([commands], { serverTokens });
    for (const host of [guarded, tokened]) {
      const own = {
        Origin: `http://127.0.0.1:${host.http}`,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
      };
      await expect(host, "x", { method: "OPTIONS", headers: own }, [
        200,
        "",
        { "access-control-allow-headers": "Authorization" },
      ]);
    }
  });

  test("a host that allows every origin does not open the API", async () => {
    await using host = await startApi([commands], {}, { http_default_cors_enabled: true });
    await expect(host, "version", { headers: { Origin: "http://evil.example" } }, [403, forbidden, grant(undefined)]);
  });
});

describe("host names of the API", () => {
  const names: [host: string, status: number][] = [
    ["localhost", 200],
    ["LOCALHOST.:80", 200],
    ["127.0.0.1:1", 200],
    ["127.9.9.9", 200],
    ["[::1]:5001", 200],
    ["node.example:80", 200],
    ["evil.example", 403],
    ["127.0.0.1.evil.example", 403],
    ["192.0.2.1", 403],
  ];
  for (const [name, status] of names)
    test(`${name}: ${status}`, () => expect(open, "version", { headers: { Host: name } }, [status]));

  test("a name in the request line takes precedence over the header", () =>
    expect(open, "http://evil.example/api/v0/version", {}, [403]));
});

describe("tokens", () => {
  const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
  const remote = { "X-Forwarded-For": "203.0.113.7" };
  const from = (headers: Record<string, string>): AskOptions => ({ headers: { ...remote, ...headers } });
  const cases: [what: string, host: () => ApiHost, options: AskOptions, status: number][] = [
    ["a local caller needs none", () => guarded, {}, 200],
    ["another machine does", () => proxied, from({}), 403],
    ["a proxy that is not trusted does", () => guarded, from({}), 403],
    ["a proxy without any tokens does", () => open, from({}), 403],
    ["Forwarded", () => open, { headers: { Forwarded: "for=127.0.0.1" } }, 403],
    ["Via", () => open, { headers: { Via: "1.1 x" } }, 403],
    ["the right one", () => proxied, from({ Authorization: "Bearer everywhere" }), 200],
    ["in other letters of the scheme", () => proxied, from({ Authorization: "bearer everywhere" }), 200],
    ["as a password", () => proxied, from({ Authorization: basic("me:everywhere") }), 200],
    ["as user and password", () => proxied, from({ Authorization: basic("user:word") }), 200],
    [
      "with any name of the host",
      () => proxied,
      from({ Host: "evil.example", Authorization: "Bearer everywhere" }),
      200,
    ],
    ["a wrong one", () => proxied, from({ Authorization: "Bearer everywher" }), 403],
    ["a wrong one, locally", () => guarded, { headers: { Authorization: "Bearer x" } }, 403],
    ["of another path", () => proxied, from({ Authorization: "Bearer some paths" }), 403],
    [
      "with a stranger's origin",
      () => proxied,
      from({ Authorization: "Bearer everywhere", Origin: "http://evil.example" }),
      403,
    ],
    ["where there are none a header means nothing", () => open, { headers: { Authorization: "Bearer x" } }, 200],
  ];
  for (const [what, host, options, status] of cases)
    test(`${what}: ${status}`, () => expect(host(), "version", options, [status]));

  test("tokens for a path open it and everything below it", async () => {
    const options = from({ Authorization: "Bearer some paths" });
    for (const path of ["ls", "ls/x", "ls?arg=x"]) await expect(proxied, path, options, [200]);
    await expect(proxied, "/api/openapi.json", { ...options, method: "GET" }, [403]);
  });

  test("invalid options are refused without showing a token", () => {
    for (const option of ["secret", { secret: "x" }, { secret: { paths: "x" } }, [1], { secret: { path: [] } }]) {
      assert.throws(
        () => tokensFrom(option),
        (error: Error) => /api_tokens/.test(error.message) && !error.message.includes("secret"),
      );
    }
    assert.deepEqual(tokensFrom(undefined), []);
  });
});

describe("the document", () => {
  test("the document is read by GET, with the same access checks", async () => {
    const reply = await ask(open.http, "/api/openapi.json", { method: "GET" });
    assert.deepEqual([reply.status, reply.headers["content-type"]], [200, "application/json"]);
    assert.deepEqual(Object.keys(JSON.parse(reply.body).paths), ["/api/v0/ls", "/api/v0/version"]);
    await expect(open, "/api/openapi.json", { method: "POST" }, [405, undefined, { allow: "OPTIONS, GET, HEAD" }]);
    await expect(open, "/api/openapi.json", { method: "GET", headers: { Host: "evil.example" } }, [403]);
    await expect(open, "/api/openapi.json", { method: "GET", headers: { Origin: "http://evil.example" } }, [403]);
  });
});
