/**
 * Tests that the document for the word `auto` is fetched from a local server and stored in the
 * repo, where Kubo finds it.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { AutoConf } from "#node/network/auto_conf.ts";
import { builtIn } from "#node/storage/repo/auto_values.ts";
import { ConfigFile } from "#node/storage/repo/config.ts";
import { NodeLog } from "#node/util/log.ts";
import { eventually } from "#test/support/eventually.ts";
import { type AutoConfServer, autoConf, autoConfServer, peerOf } from "#test/support/network/auto_conf_server.ts";
import { emptyFolder, newConfig } from "../storage/repo/support.ts";

const one = peerOf("192.0.2.1");
const two = peerOf("192.0.2.2");

interface Fetching {
  readonly config: ConfigFile;
  readonly folder: string;
  readonly fetching: AutoConf;
  readonly logged: readonly string[];
  changes: number;
}

/**
 * Opens a configuration that contains `auto`, with the object that fetches the document; both are
 * closed when the test ends.
 */
async function fetching(t: TestContext, { url }: Pick<AutoConfServer, "url">, more: Record<string, unknown> = {}) {
  const { config, folder } = await newConfig(t);
  const values = {
    "AutoConf.URL": url,
    Bootstrap: ["auto"],
    "DNS.Resolvers": { ".": "auto", "crypto.": "https://own.example/dns-query" },
    "Routing.DelegatedRouters": ["auto", "https://own.example"],
    "Ipns.DelegatedPublishers": ["auto"],
    ...more,
  };
  for (const [path, value] of Object.entries(values)) await config.set(path, () => value);
  const log = new NodeLog();
  const logged = [] as string[];
  log.setLevel("*", "info");
  log.listen(({ level, message }) => logged.push(`${level} ${message}`));
  const whole: Fetching = {
    config,
    folder,
    logged,
    changes: 0,
    fetching: new AutoConf({
      config,
      log,
      changed: async () => {
        whole.changes += 1;
      },
    }),
  };
  t.after(() => whole.fetching.stop());
  return whole;
}

const bootstrapIn = (config: ConfigFile) => config.get("Bootstrap", { expandAuto: true });
const isBootstrap = (config: ConfigFile, wanted: readonly string[]) =>
  eventually(`the peers are ${wanted}`, async () => String(await bootstrapIn(config)) === String(wanted));

test("the values of a document replace the word, and are cached for the next start", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one]));
  const { config, folder, fetching: own, logged } = await fetching(t, server);
  assert.deepEqual(await bootstrapIn(config), builtIn.Bootstrap, "until then it is what is built in");
  assert.equal(server.requests.length, 0);
  await own.renew();
  await isBootstrap(config, [one]);
  const expanded = { expandAuto: true };
  assert.deepEqual(await config.get("Routing.DelegatedRouters", expanded), [
    "https://index.example/routing/v1/providers",
    "https://own.example",
  ]);
  assert.deepEqual(await config.get("Ipns.DelegatedPublishers", expanded), ["https://odd.example/routing/v1/ipns"]);
  assert.deepEqual(await config.get("DNS.Resolvers", expanded), {
    "crypto.": "https://own.example/dns-query",
    "eth.": "https://dns.example/dns-query",
  });
  assert.deepEqual(await config.get("Bootstrap"), ["auto"]);
  await config.set("Routing.Type", () => "delegated");
  assert.deepEqual(await bootstrapIn(config), [], "no system is the node's own");
  assert.equal(((await config.get("Routing.DelegatedRouters", expanded)) as string[]).length, 4);
  await config.set("Routing.Type", () => "auto");
  await own.stop();
  assert.deepEqual(await bootstrapIn(await ConfigFile.open(folder)), [one]);
  // The document is not old enough for another request.
  await own.renew();
  assert.equal(server.requests.length, 1);
  assert.match(server.requests[0]?.["user-agent"] ?? "", /^modhost\//);
  assert.deepEqual(logged, [`info ${server.url} (AutoConf.URL): version 1`]);
});

test("the server is polled for a new document", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one]));
  const { config, folder, fetching: own } = await fetching(t, server, { "AutoConf.RefreshInterval": "10ms" });
  await own.renew();
  await isBootstrap(config, [one]);
  await eventually("the server gets another request", () => server.requests.length > 1);
  assert.match(server.requests[1]?.["if-none-match"] ?? "", /-1"$/);
  for (const version of [3, 4, 5, 6]) {
    server.response = autoConf(version, [two, peerOf(`192.0.2.${version}`)]);
    await isBootstrap(config, [two, peerOf(`192.0.2.${version}`)]);
  }
  await own.stop();
  const [cached = ""] = await readdir(join(folder, "autoconf"));
  const names = await readdir(join(folder, "autoconf", cached));
  assert.equal(names.filter((name) => /^autoconf-\d+\.json$/.test(name)).length, 3);
  assert.match(await readFile(join(folder, "autoconf", cached, ".last-refresh"), "utf8"), /^\d{4}-.*Z$/);
});

test("the document can shorten the interval of the configuration", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one], { AutoConfTTL: 1 }));
  const { fetching: own } = await fetching(t, server);
  await own.renew();
  await eventually("the server gets another request", () => server.requests.length > 1);
});

const documents: Readonly<Record<string, readonly [content: AutoConfServer["response"], says: RegExp]>> = {
  "an error": [500, /the response has status 500/],
  "no JSON": [(_, response) => response.end("<html>"), /it is not JSON/],
  "no object": [[], /it has no AutoConfVersion|it is not an object/],
  "a document of another form": [
    { AutoConfVersion: 1, AutoConfSchema: 2 },
    /its AutoConfSchema is 2, but only 1 is supported/,
  ],
  "resolvers that are none": [
    autoConf(1, [], { DNSResolvers: { "x.": ["ftp://x"] } }),
    /ftp:\/\/x .*not an http or https URL/,
  ],
  "a list that is none": [
    autoConf(1, [], { SystemRegistry: { AminoDHT: { NativeConfig: { Bootstrap: 1 } } } }),
    /is not a list/,
  ],
  "more than anybody needs": [(_, response) => response.end(" ".repeat(2 ** 21 + 1)), /longer than 2097152 bytes/],
  "a response that breaks off": [(_, response) => response.writeHead(200, { "content-length": "9" }).destroy(), /./],
};

test("an invalid response leaves the previous values in effect, and the request is repeated", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one]));
  const whole = await fetching(t, server, { "AutoConf.RefreshInterval": "1ms" });
  const { config, fetching: own, logged } = whole;
  await own.renew();
  await isBootstrap(config, [one]);
  for (const [name, [content, says]] of Object.entries(documents)) {
    await own.stop();
    server.response = content;
    const before = logged.length;
    await own.renew();
    await eventually(`${name} is reported`, () => logged.length > before);
    assert.match(logged[before] ?? "", new RegExp(`^warn ${server.url} .*${says.source}.*stay in effect`), name);
    assert.deepEqual(await bootstrapIn(config), [one], name);
  }
  await own.stop();
  server.response = autoConf(2, [two, "no address"]);
  await own.renew();
  await isBootstrap(config, [two, "no address"]);
  assert.equal(whole.changes, 2);
});

test("an untrusted certificate is only accepted if the configuration allows it", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one]), { secure: true });
  const { config, fetching: own, logged } = await fetching(t, server);
  await own.renew();
  await eventually("the certificate is rejected", () => logged.length > 0);
  assert.match(logged[0] ?? "", /^warn .*certificate/);
  await config.set("AutoConf.TLSInsecureSkipVerify", () => true);
  await own.renew();
  await isBootstrap(config, [one]);
});

test("no request is sent without the word or with AutoConf disabled, and built-in values apply", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one]));
  const { config, fetching: own } = await fetching(t, server);
  await own.renew();
  await isBootstrap(config, [one]);
  await config.set("AutoConf.Enabled", () => false);
  assert.deepEqual(await bootstrapIn(config), builtIn.Bootstrap);
  await own.renew();
  await config.set("AutoConf.Enabled", () => true);
  assert.deepEqual(await bootstrapIn(config), [one]);
  const silent = await fetching(t, server, {
    Bootstrap: [],
    "DNS.Resolvers": {},
    "Routing.DelegatedRouters": [],
    "Ipns.DelegatedPublishers": [],
  });
  await silent.fetching.renew();
  await own.stop();
  await silent.fetching.stop();
  assert.equal(server.requests.length, 1);
});

const { KUBO } = process.env;

test("Kubo finds the cached document", {
  skip: KUBO === undefined && "KUBO is not set",
}, async (t) => {
  await using server = await autoConfServer(autoConf(1, [one]));
  const { config, folder, fetching: own } = await fetching(t, server);
  await own.renew();
  await isBootstrap(config, [one]);
  await own.stop();
  const theirs = await emptyFolder(t);
  const kubo = async (...args: readonly string[]) => {
    const env = { ...process.env, IPFS_PATH: theirs };
    return (await promisify(execFile)(KUBO as string, args, { env })).stdout;
  };
  await kubo("init", "--profile=test");
  await kubo("config", "--json", "AutoConf", JSON.stringify({ Enabled: true, URL: server.url }));
  await kubo("config", "--json", "Bootstrap", '["auto"]');
  await cp(join(folder, "autoconf"), join(theirs, "autoconf"), { recursive: true });
  assert.deepEqual(JSON.parse(await kubo("config", "Bootstrap", "--expand-auto")), [one]);
});
