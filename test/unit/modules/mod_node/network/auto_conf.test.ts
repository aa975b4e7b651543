/** What the word `auto` stands for is fetched from a server of this machine, kept in the repo, and found there by Kubo. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { AutoConf } from "#node/network/auto_conf.ts";
import { ConfigFile } from "#node/storage/repo/config.ts";
import { bootstrapPeers } from "#node/storage/repo/defaults.ts";
import { NodeLog } from "#node/util/log.ts";
import { eventually } from "#test/support/eventually.ts";
import { type AutoConfServer, autoConf, autoConfServer, peerOf } from "#test/support/network/auto_conf_server.ts";
import { emptyFolder, newConfig } from "../storage/repo/support.ts";

const [one, two] = [peerOf("192.0.2.1"), peerOf("192.0.2.2")];

interface Fetching {
  readonly config: ConfigFile;
  readonly folder: string;
  readonly fetching: AutoConf;
  readonly logged: readonly string[];
  changes: number;
}

/** A configuration that says `auto`, and what fetches its meaning; it ends with the test. */
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
  const [log, logged] = [new NodeLog(), [] as string[]];
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

test("what a document says takes the place of the word, and is there at the next start without asking", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one]));
  const { config, folder, fetching: own, logged } = await fetching(t, server);
  assert.deepEqual(await bootstrapIn(config), bootstrapPeers, "until then it is what is built in");
  assert.equal(server.asked.length, 0);
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
  // It is not old enough for another question.
  await own.renew();
  assert.equal(server.asked.length, 1);
  assert.match(server.asked[0]?.["user-agent"] ?? "", /^modhost\//);
  assert.deepEqual(logged, [`info ${server.url} (AutoConf.URL): version 1`]);
});

test("a server is asked again and again, whether it has something new", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one]));
  const { config, folder, fetching: own } = await fetching(t, server, { "AutoConf.RefreshInterval": "10ms" });
  await own.renew();
  await isBootstrap(config, [one]);
  await eventually("it is asked once more", () => server.asked.length > 1);
  assert.match(server.asked[1]?.["if-none-match"] ?? "", /-1"$/);
  for (const version of [3, 4, 5, 6]) {
    server.answer = autoConf(version, [two, peerOf(`192.0.2.${version}`)]);
    await isBootstrap(config, [two, peerOf(`192.0.2.${version}`)]);
  }
  await own.stop();
  const [cached = ""] = await readdir(join(folder, "autoconf"));
  const names = await readdir(join(folder, "autoconf", cached));
  assert.equal(names.filter((name) => /^autoconf-\d+\.json$/.test(name)).length, 3);
  assert.match(await readFile(join(folder, "autoconf", cached, ".last-refresh"), "utf8"), /^\d{4}-.*Z$/);
});

test("sooner than the configuration says where the document wants it", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one], { AutoConfTTL: 1 }));
  const { fetching: own } = await fetching(t, server);
  await own.renew();
  await eventually("it is asked once more", () => server.asked.length > 1);
});

const documents: Readonly<Record<string, readonly [answer: AutoConfServer["answer"], says: RegExp]>> = {
  "an error": [500, /the answer is 500/],
  "no JSON": [(_, response) => response.end("<html>"), /it is no JSON/],
  "no object": [[], /it has no AutoConfVersion|it is no object/],
  "a document of another form": [
    { AutoConfVersion: 1, AutoConfSchema: 2 },
    /its AutoConfSchema is 2, and 1 is understood/,
  ],
  "resolvers that are none": [autoConf(1, [], { DNSResolvers: { "x.": ["ftp://x"] } }), /ftp:\/\/x .*no URL/],
  "a list that is none": [
    autoConf(1, [], { SystemRegistry: { AminoDHT: { NativeConfig: { Bootstrap: 1 } } } }),
    /no list/,
  ],
  "more than anybody needs": [(_, response) => response.end(" ".repeat(2 ** 21 + 1)), /longer than 2097152 bytes/],
  "an answer that breaks off": [(_, response) => response.writeHead(200, { "content-length": "9" }).destroy(), /./],
};

test("whatever a server answers, what was known before stays in force, and it is asked again", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one]));
  const whole = await fetching(t, server, { "AutoConf.RefreshInterval": "1ms" });
  const { config, fetching: own, logged } = whole;
  await own.renew();
  await isBootstrap(config, [one]);
  for (const [name, [answer, says]] of Object.entries(documents)) {
    await own.stop();
    server.answer = answer;
    const before = logged.length;
    await own.renew();
    await eventually(`${name} is told`, () => logged.length > before);
    assert.match(logged[before] ?? "", new RegExp(`^warn ${server.url} .*${says.source}.*stays in force`), name);
    assert.deepEqual(await bootstrapIn(config), [one], name);
  }
  await own.stop();
  server.answer = autoConf(2, [two, "no address"]);
  await own.renew();
  await isBootstrap(config, [two, "no address"]);
  assert.equal(whole.changes, 2);
});

test("a certificate that nobody vouches for is only taken where the configuration says so", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one]), { secure: true });
  const { config, fetching: own, logged } = await fetching(t, server);
  await own.renew();
  await eventually("it is refused", () => logged.length > 0);
  assert.match(logged[0] ?? "", /^warn .*certificate/);
  await config.set("AutoConf.TLSInsecureSkipVerify", () => true);
  await own.renew();
  await isBootstrap(config, [one]);
});

test("nobody is asked where the word is not, and where AutoConf is off: then it is what is built in", async (t) => {
  await using server = await autoConfServer(autoConf(1, [one]));
  const { config, fetching: own } = await fetching(t, server);
  await own.renew();
  await isBootstrap(config, [one]);
  await config.set("AutoConf.Enabled", () => false);
  assert.deepEqual(await bootstrapIn(config), bootstrapPeers);
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
  assert.equal(server.asked.length, 1);
});

const { KUBO } = process.env;

test("Kubo finds what was fetched here", {
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
