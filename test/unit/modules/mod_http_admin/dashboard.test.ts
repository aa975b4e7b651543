import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import type { MadeToken } from "#core/types.ts";
import { folderOf } from "#test/unit/core/module/support.ts";
import { type AdminHost, adminHost } from "./support.ts";

const navigation = {
  Accept: "text/html",
  "Sec-Fetch-Site": "none",
  "Sec-Fetch-Mode": "navigate",
  "Sec-Fetch-Dest": "document",
};
/** The headers of a request by a script on a page of this origin. */
const script = { "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty" };

async function started(t: TestContext, config: Record<string, unknown> = {}) {
  const host = await adminHost(t, { config: { admin_local: "any_user", ...config } });
  const get = (path: string, headers: Record<string, string> = {}, more = {}) =>
    host.ask({ path, headers: { Host: "localhost", ...headers }, ...more });
  return { host, get };
}

const keyIn = (page: string) => /<meta name="page-key" content="([^"]*)">/.exec(page)?.[1];

async function secretOf(host: AdminHost, scopes = "admin", name = "desk"): Promise<string> {
  const { value } = await host.call<MadeToken>("POST", "/tokens", { name, scopes });
  return value.secret;
}

describe("the document of the dashboard", () => {
  test("is sent to a tab at every address of a page, and contains nothing inline and nothing from other origins", async (t) => {
    const { get } = await started(t);
    for (const path of ["/admin/", "/admin/modules/http_notes", "/admin/no/such/page"]) {
      const { status, headers, body } = await get(path, navigation);
      assert.equal(status, 200);
      const policy = String(headers["content-security-policy"]);
      assert.match(policy, /^default-src 'none'; script-src 'nonce-[\w+/=]+' 'strict-dynamic'; style-src 'self';/);
      assert.match(policy, /frame-ancestors 'none'.*require-trusted-types-for 'script'/);
      assert.equal(headers["cross-origin-opener-policy"], "same-origin");
      assert.equal(headers["cache-control"], "no-store");
      assert.doesNotMatch(body, /\s(?:style|on\w+)=|https?:|<style/);
    }
    assert.deepEqual((await get("/admin", navigation)).headers.location, "/admin/");
    assert.deepEqual((await get("/", navigation)).headers.location, "/admin/");
  });

  test("is not sent to programs, which get 404 at unknown addresses", async (t) => {
    const { get } = await started(t);
    assert.equal((await get("/admin/nothing", { Accept: "application/json" })).status, 404);
    assert.equal((await get("/admin/nothing")).status, 404);
  });

  test("contains a page key only for a navigation that no other site started", async (t) => {
    const { get } = await started(t);
    for (const site of ["none", "same-origin"]) {
      const { body } = await get("/admin/", { ...navigation, "Sec-Fetch-Site": site });
      assert.match(keyIn(body) ?? "", /^[\w-]{43}$/);
      assert.match(body, /name="again" content=""/);
    }
    for (const site of ["same-site", "cross-site"]) {
      const { body } = await get("/admin/", { ...navigation, "Sec-Fetch-Site": site });
      assert.equal(keyIn(body), "");
      assert.match(body, /name="again" content="yes"/, "the document opens its address again, from its own origin");
    }
    const others = [
      script,
      { ...navigation, "Sec-Fetch-Dest": "iframe" },
      { ...navigation, "Sec-Fetch-Dest": "object" },
      { ...navigation, "Sec-Fetch-Mode": "no-cors" },
    ];
    for (const headers of others)
      assert.equal(keyIn((await get("/admin/", { ...headers, Accept: "text/html" })).body), "");
    assert.equal(keyIn((await get("/admin/", navigation, { remote_address: "192.0.2.7" })).body), "");
    assert.equal(keyIn((await get("/admin/", { ...navigation, Host: "rebound.example" })).body), "");
    assert.equal(keyIn((await get("/admin/", { ...navigation, "X-Forwarded-For": "192.0.2.7" })).body), "");
  });
});

describe("the page key", () => {
  test("is required from every page of this origin, but not from programs", async (t) => {
    const { get } = await started(t);
    const key = keyIn((await get("/admin/", navigation)).body) ?? "";
    assert.equal((await get("/admin/api/status")).status, 200);
    const without = await get("/admin/api/status", script);
    assert.deepEqual([without.status, without.json<{ error: { code: string } }>().error.code], [403, "page_key"]);
    assert.equal((await get("/admin/api/status", { ...script, "X-Modhost-Page": key.replace(/./g, "x") })).status, 403);
    assert.equal((await get("/admin/api/status", { ...script, "X-Modhost-Page": key })).status, 200);
    assert.equal((await get(`/admin/api/status?page_key=${key}`, script)).status, 200);
    const change = { path: `/admin/api/modules/http/reload?page_key=${key}`, method: "POST" };
    assert.equal((await get(change.path, { ...script, "X-Modhost-Admin": "1" }, change)).status, 403);
  });

  test("is not required for an address that the user typed, but for one that a page has opened", async (t) => {
    const { get } = await started(t);
    assert.equal((await get("/admin/api/status", navigation)).status, 200);
    assert.equal((await get("/admin/api/status", { ...navigation, "Sec-Fetch-Site": "same-origin" })).status, 403);
    assert.equal((await get("/admin/api/status", { ...navigation, "Sec-Fetch-Site": "cross-site" })).status, 403);
  });

  test("is the same after a restart, so open pages keep working", async (t) => {
    const data_path = await folderOf(t, {});
    const { host, get } = await started(t, { data_path });
    const key = keyIn((await get("/admin/", navigation)).body);
    await host.stop();
    const { get: again } = await started(t, { data_path });
    assert.equal(keyIn((await again("/admin/", navigation)).body), key);
  });
});

describe("signing in", () => {
  const far = { remote_address: "192.0.2.7" };
  const name = { Host: "www.example.org" };
  const isSignedIn = (page: string) => /<meta name="signed-in" content="yes">/.test(page);

  async function signedIn({ host, get }: Awaited<ReturnType<typeof started>>, scopes?: string, who?: string) {
    const signIn = { Authorization: `Bearer ${await secretOf(host, scopes, who)}`, "X-Modhost-Admin": "1", ...script };
    const response = await get("/admin/session", signIn, { method: "POST", secure: true, ...far });
    assert.equal(response.status, 200, response.body);
    const [line = ""] = response.headers["set-cookie"] ?? [];
    const { page_key: key } = response.json<{ page_key: string }>();
    return { line, key, cookie: line.split(";")[0] ?? "", secret: signIn.Authorization.slice("Bearer ".length) };
  }

  test("gives the scopes of the token, by a cookie that scripts cannot read and a key that only the page has", async (t) => {
    const running = await started(t);
    const { host, get } = running;
    const { line, key, cookie } = await signedIn(running, "admin:read");
    assert.match(line, /^modhost_admin_[\w-]{8}=[\w-]+; Path=\/admin; HttpOnly; SameSite=Strict; Secure$/);
    assert.match(key, /^[\w-]{43}$/);
    const page = (await get("/admin/", { ...navigation, ...name, Cookie: cookie }, far)).body;
    assert.deepEqual([isSignedIn(page), keyIn(page)], [true, ""], "no document contains the key");
    const signed = { ...script, ...name, Cookie: cookie };
    const who = await get("/admin/api/whoami", { ...signed, "X-Modhost-Page": key }, far);
    assert.deepEqual(who.json(), { by: "token desk", scopes: ["read"] });
    const change = { ...signed, "X-Modhost-Page": key, "X-Modhost-Admin": "1" };
    assert.equal((await get("/admin/api/modules/http/reload", change, { method: "POST", ...far })).status, 403);
    const leave = { ...signed, "X-Modhost-Admin": "1" };
    const signOut = (headers: Record<string, string>) => get("/admin/session", headers, { method: "DELETE", ...far });
    assert.equal((await signOut(leave)).status, 403, "another page cannot sign the user out");
    assert.equal((await signOut({ ...leave, "X-Modhost-Page": key })).status, 200);
    await host.call("POST", "/tokens/desk/revoke");
    assert.equal((await get("/admin/api/whoami", { ...signed, "X-Modhost-Page": key }, far)).status, 403);
    assert.equal(isSignedIn((await get("/admin/", { ...navigation, ...name, Cookie: cookie }, far)).body), false);
  });

  test("sets a cookie that is useless to servers at other ports of the host name, which receive it", async (t) => {
    const running = await started(t);
    const { get } = running;
    const { cookie, secret, key } = await signedIn(running);
    assert.doesNotMatch(cookie, new RegExp(secret.slice(8)), "the cookie does not contain the token");
    assert.doesNotMatch(Buffer.from(cookie.split("=")[1] ?? "", "base64url").toString(), new RegExp(secret.slice(8)));
    // A server that receives the cookie can send any header. It gets neither data nor a key.
    for (const headers of [{}, script, navigation]) {
      const response = await get("/admin/api/status", { ...headers, ...name, Cookie: cookie }, far);
      assert.deepEqual([response.status, response.json<{ error: { code: string } }>().error.code], [403, "page_key"]);
      assert.equal(
        keyIn((await get("/admin/", { Accept: "text/html", ...headers, ...name, Cookie: cookie }, far)).body),
        "",
      );
    }
    const bearer = { ...name, Authorization: `Bearer ${cookie.split("=")[1]}` };
    assert.equal((await get("/admin/api/status", bearer, far)).status, 401, "the cookie is no token");
    const again = await signedIn(running, "admin", "second");
    assert.notEqual(again.cookie, cookie, "every session has its own cookie");
    const mixed = { ...script, ...name, Cookie: again.cookie, "X-Modhost-Page": key };
    assert.equal((await get("/admin/api/status", mixed, far)).status, 403, "a key belongs to one session");
  });

  test("works when other servers of the same host name have set cookies", async (t) => {
    const running = await started(t);
    const { get } = running;
    const { cookie, key } = await signedIn(running);
    const other = await signedIn(running, "admin:read", "second");
    const [label = ""] = cookie.split("=");
    for (const tossed of [`${label}=x`, `${label}=`, `${label}=${"A".repeat(60)}`, other.cookie]) {
      const headers = { ...script, ...name, Cookie: `${tossed}; ${cookie}`, "X-Modhost-Page": key };
      assert.equal((await get("/admin/api/status", headers, far)).status, 200, tossed);
    }
    // On the machine itself, the session cookie of another token does not replace the caller's own
    // identity.
    const page = (await get("/admin/", { ...navigation, Cookie: cookie })).body;
    const here = { ...script, Cookie: cookie, "X-Modhost-Page": keyIn(page) ?? "" };
    assert.equal((await get("/admin/api/whoami", here)).json<{ by: string }>().by, "this machine");
  });

  test("needs a connection that nobody can read, and a valid token", async (t) => {
    const { host, get } = await started(t);
    const headers = { Authorization: `Bearer ${await secretOf(host)}`, "X-Modhost-Admin": "1" };
    const plain = await get("/admin/session", headers, { method: "POST", remote_address: "192.0.2.7" });
    assert.equal(plain.status, 403);
    assert.match(plain.body, /Signing in needs HTTPS/);
    assert.equal((await get("/admin/session", headers, { method: "POST" })).status, 200);
    const forged = { ...headers, Authorization: "Bearer modhost_nothing" };
    assert.equal((await get("/admin/session", forged, { method: "POST" })).status, 401);
    assert.equal((await get("/admin/session", { "X-Modhost-Admin": "1" }, { method: "POST" })).status, 401);
    const out = await get("/admin/session", { "X-Modhost-Admin": "1" }, { method: "DELETE" });
    assert.match(String(out.headers["set-cookie"]), /=; Path=\/admin; HttpOnly; SameSite=Strict; Max-Age=0$/);
  });
});

describe("files of the dashboard", () => {
  test("are cached by browsers until they change, and sent compressed", async (t) => {
    const { get } = await started(t);
    const page = (await get("/admin/", navigation)).body;
    const addresses = [...page.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, address]) => address ?? "");
    const map = /<script type="importmap"[^>]*>(.*?)<\/script>/.exec(page)?.[1] ?? "{}";
    addresses.push(...Object.values<string>(JSON.parse(map).imports));
    assert.ok(addresses.length > 20);
    for (const address of addresses) {
      const { status, headers } = await get(address, { "Accept-Encoding": "gzip, br" });
      assert.equal(status, 200, address);
      assert.match(String(headers["content-type"]), /^text\/(?:javascript|css); charset=utf-8$/, address);
      assert.equal(headers["cache-control"], "private, max-age=31536000, immutable");
      assert.equal(headers["content-encoding"], "br");
    }
    const main = addresses.find((address) => address.endsWith("/main.js")) ?? "";
    const sent = await get(main, { "Accept-Encoding": "br" });
    assert.match(brotliDecompressSync(sent.bytes()).toString(), /addSection\(hostSection\)/);
    const old = await get(main.replace(/files\/\w+/, "files/000000000000"));
    assert.deepEqual([old.status, old.headers["cache-control"]], [200, "no-store"]);
  });

  test("contain only the files of the dashboard", async (t) => {
    const { get } = await started(t);
    for (const path of [
      "admin/../index.ts",
      "admin/%2e%2e/index.ts",
      "preact/preact.mjs.map",
      "preact/../package.json",
      "none/a.js",
      "",
    ])
      assert.equal((await get(`/admin/files/0/${path}`)).status, 404, path);
  });

  test("include the pages of other modules, with their scripts and styles", async (t) => {
    const folder = new URL("../../../fixtures/admin_pages/", import.meta.url);
    const host = await adminHost(t, {
      config: { admin_local: "any_user" },
      modules: [
        {
          name: "garden",
          depends: ["http_admin"],
          load: (module) =>
            module.provides("admin", { pages: { folder, script: "garden.js", styles: ["garden.css"] } }),
        },
      ],
    });
    const { body } = await host.ask({ path: "/admin/", headers: { Host: "localhost", ...navigation } });
    assert.match(body, /<link rel="stylesheet" href="\/admin\/files\/\w+\/of-garden\/garden.css">/);
    const [, script = ""] = /&#34;(\/admin\/files\/\w+\/of-garden\/garden.js)&#34;/.exec(body) ?? [];
    assert.match((await host.ask({ path: script, headers: { Host: "localhost" } })).body, /Garden/);
  });
});
