import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { eventually } from "#test/support/eventually.ts";
import { type RpcHost, startRpc } from "./support.ts";

let host: RpcHost;
before(async () => {
  host = await startRpc();
});
after(() => host.stop());

test("id shows the node's identity in any base, formatted as requested", async () => {
  const id = await host.value("id");
  assert.deepEqual(Object.keys(id), ["ID", "PublicKey", "Addresses", "AgentVersion", "ProtocolVersion", "Protocols"]);
  assert.match(String(id.ID), /^12D3KooW/);
  assert.match(String(id.AgentVersion), /^modhost\/\d+\.\d+\.\d+\/$/);
  assert.deepEqual([id.Addresses, id.Protocols, id.ProtocolVersion], [null, null, "ipfs/0.1.0"]);
  assert.match(String((await host.value("id?peerid-base=k")).ID), /^k51qzi5uqu5/);
  assert.deepEqual(await host.value(`id?arg=${id.ID}`), id);
  const format = encodeURIComponent("<id>\\t<pver>\\n<addrs><pubkey>$&");
  const { text } = await host.call(`id?format=${format}&encoding=text`);
  assert.equal(text, `${id.ID}\tipfs/0.1.0\n${id.PublicKey}$&`);
  const printed = (await host.call("id?encoding=text")).text;
  assert.ok(printed.startsWith('{\n\t"ID": "12D3') && printed.endsWith('"Protocols": null\n}\n\n'), printed);
  assert.deepEqual(await host.failure("id?arg=x"), [500, "invalid peer id"]);
  assert.deepEqual(await host.failure("id?peerid-base=nope&arg=x"), [500, "Unsupported multibase encoding: nope"]);
  const [status, message] = await host.failure("id?arg=QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN");
  assert.equal(status, 500);
  assert.match(String(message), /^'ipfs id' currently cannot query information on remote\npeers/);
});

test("repo/stat and stats/repo have the same sizes, flat and below SizeStat", async () => {
  // The start still writes in the background, so the files grow for a while.
  let stat: Record<string, unknown> = {};
  let small = stat;
  await eventually("three requests in a row return the same sizes", async () => {
    stat = await host.value("repo/stat");
    const again = await host.value("stats/repo");
    small = await host.value("repo/stat?size-only=true");
    return isDeepStrictEqual(stat, again) && small.RepoSize === stat.RepoSize;
  });
  assert.deepEqual(stat.SizeStat, { RepoSize: stat.RepoSize, StorageMax: 10_000_000_000 });
  assert.deepEqual([stat.NumObjects, stat.Version, stat.RepoPath], [1, "fs-repo@11", `${host.folder}/data/repo`]);
  assert.deepEqual([small.NumObjects, small.Version, small.RepoSize], [0, "", stat.RepoSize]);
  const { text } = await host.call("repo/stat?human=1&encoding=text");
  assert.match(
    text,
    /^NumObjects: 1\nRepoSize: {3}\d+ kB\nStorageMax: 10 GB\nRepoPath: {3}\/.*\nVersion: {4}fs-repo@11\n$/,
  );
  assert.match((await host.call("repo/stat?s=1&encoding=text")).text, /^RepoSize: {3}\d+\nStorageMax: 10000000000\n$/);
});

test("an unlimited repo reports the maximum of 64 bits", async () => {
  await host.call("config?arg=Datastore.StorageMax&arg=");
  assert.match((await host.call("repo/stat")).text, /"StorageMax":18446744073709551615,/);
  await host.call("config?arg=Datastore.StorageMax&arg=10GB");
});

test("repo/version and repo/fsck return their values", async () => {
  assert.deepEqual(await host.value("repo/version"), { Version: "11" });
  assert.equal((await host.call("repo/version?encoding=text")).text, "ipfs repo version fs-repo@11\n");
  assert.equal((await host.call("repo/version?q=1&encoding=text")).text, "fs-repo@11\n");
  assert.deepEqual(await host.value("repo/fsck"), { Message: "No stale lock files.\n" });
});

test("diag/cmds lists running and finished commands, and clears them on request", async () => {
  await host.call("diag/cmds/set-time?arg=1m");
  await host.call("diag/cmds/clear");
  await host.call("version?number=true");
  const [listed = []] = (await host.call("diag/cmds")).lines as Record<string, unknown>[][];
  const [cleared, version, own] = listed;
  assert.deepEqual([cleared?.Command, version?.Command, own?.Command], ["diag/cmds/clear", "version", "diag/cmds"]);
  assert.deepEqual([version?.Options, version?.Args, version?.Active], [{ encoding: "json", number: true }, [], false]);
  assert.deepEqual([own?.Active, own?.EndTime], [true, "0001-01-01T00:00:00Z"]);
  assert.ok(Date.parse(String(version?.EndTime)) >= Date.parse(String(version?.StartTime)));
  const { text } = await host.call("diag/cmds?verbose=1&encoding=text");
  assert.match(text, /^ID +Command +Arguments +Options +Active +StartTime +RunTime\n/);
  assert.match(
    text,
    /\n\d+ +version +\[\] +\[encoding=json,number=true,\] +false +[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d +[\d.]+[mµ]?s\n/,
  );
  assert.deepEqual(await host.failure("diag/cmds/set-time?arg=x"), [500, 'time: invalid duration "x"']);
});

test("values written to the configuration are not listed", async () => {
  await host.call("config?arg=Mine&arg=very-secret");
  assert.doesNotMatch((await host.call("diag/cmds")).text, /very-secret/);
});

test("diag/sys describes disk, memory, net and runtime", async () => {
  const facts = await host.value<Record<string, Record<string, unknown>>>("diag/sys");
  assert.deepEqual(Object.keys(facts), [
    "diskinfo",
    "environment",
    "ipfs_commit",
    "ipfs_version",
    "memory",
    "net",
    "runtime",
  ]);
  assert.equal(facts.environment?.IPFS_PATH, `${host.folder}/data/repo`);
  assert.ok(Number(facts.diskinfo?.free_space) > 0 && Number(facts.memory?.virt) > 0);
  assert.match(String(facts.net?.interface_addresses), /(^|,)\/ip4\/127\.0\.0\.1(,|$)/);
  assert.equal(facts.runtime?.version, `node ${process.version}`);
});

test("log/level accepts every subsystem of log/ls", async () => {
  const { Strings } = await host.value<{ Strings: string[] }>("log/ls");
  assert.ok(["bitswap", "core", "dht", "engine", "fsrepo", "cmds/http"].every((name) => Strings.includes(name)));
  for (const name of Strings) await host.value(`log/level?arg=${encodeURIComponent(name)}&arg=error`);
  assert.equal(
    (await host.call("log/level?arg=all&arg=ERROR&encoding=text")).text,
    "Changed log level of '*' to 'ERROR'\n",
  );
  assert.deepEqual(await host.failure("log/level?arg=nosuch&arg=info"), [500, "Error: No such logger"]);
  assert.deepEqual(await host.failure("log/level?arg=nosuch&arg=loud"), [500, 'unrecognized level: "loud"']);
});

test("log/tail sends its head at once, then a line for each event, until the client disconnects", async () => {
  const leave = new AbortController();
  const url = `http://127.0.0.1:${host.http}/api/v0/log/tail`;
  const response = await fetch(url, { method: "POST", signal: leave.signal });
  assert.equal(response.headers.get("content-type"), "text/plain");
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  // The stream starts to listen once its first line is requested, so calls are repeated until one
  // appears.
  let seen = "";
  const firstLine = reader.read().then(({ value }) => (seen = value ?? ""));
  while (seen === "") await Promise.race([firstLine, host.call("version")]);
  const [first = ""] = seen.split("\n");
  const { event, system, command } = JSON.parse(first);
  assert.match(`${event} ${system} ${command}`, /^command(Begin|End) commands version$/);
  leave.abort();
  await assert.rejects(reader.read());
});

test("version/deps lists the packages with their checksums, modhost first", async () => {
  const { lines } = await host.call("version/deps");
  const [own, ...rest] = lines as Record<string, string>[];
  assert.equal(own?.Path, "modhost");
  assert.deepEqual(Object.keys(own ?? {}), ["Path", "Version", "ReplacedBy", "Sum"]);
  const koa = rest.find(({ Path }) => Path === "koa");
  assert.match(koa?.Version ?? "", /^3\./);
  assert.match(koa?.Sum ?? "", /^sha512-/);
  assert.match((await host.call("version/deps?encoding=text")).text, /^modhost@\d/);
});

test("config/edit explains how to edit if it is switched off", async () => {
  const [status, message] = await host.failure("config/edit");
  assert.equal(status, 500);
  assert.match(String(message), /^config\/edit is switched off: set the option api_config_edit/);
});
