/** Odd inputs for a node: a function for each kind of input. It throws if something is wrong. */
import assert from "node:assert/strict";
import { CarReader } from "@ipld/car";
import * as dagCbor from "@ipld/dag-cbor";
import * as dagJson from "@ipld/dag-json";
import { parsePath } from "#node/content/resolver/path.ts";
import type { Random } from "#test/endurance/fuzz/random.ts";
import { storageCommands } from "#test/support/storage_commands.ts";
import { type Body, type FuzzClient, type FuzzQuery, multipart, upload } from "./client.ts";
import { archive, damaged, path, record, value, word } from "./material.ts";

export type RoundKind = (client: FuzzClient, random: Random) => Promise<void>;

/** These commands end the node, change its identity, wait for events, or involve the operator. */
const spared = /^(shutdown|log\/tail|config\/edit|key\/rotate|config\/replace|config\/profile\/apply|config)$/;
const commands = storageCommands.filter(([name]) => !spared.test(name));

const alone = { offline: "true", timeout: "10s" } as const;

/** Calls any command with its own arguments and options, those of others, and unknown ones. */
async function query(client: FuzzClient, random: Random): Promise<void> {
  const [name, command] = random.pick(commands);
  const known = Object.keys({ ...command.group?.options, ...command.options });
  const option = () =>
    known.length > 0 && random.chance(0.9) ? random.pick(known) : random.pick(["arg", "enc", "cid-base", "x"]);
  const wanted = random.chance(0.8) ? command.arguments.length : random.below(4);
  const pairs: FuzzQuery = [
    ...Array.from({ length: wanted }, () => ["arg", word(random)] as const),
    ...random.some(3, () => [option(), word(random)] as const),
    ...(random.chance(0.2) ? [["encoding", random.pick(["json", "text", "xml", "protobuf", "x"])] as const] : []),
    ...Object.entries(alone),
  ];
  const wantsFile = command.file !== undefined ? 0.9 : 0.1;
  await client.call(name, pairs, random.chance(wantsFile) ? anyBody(random) : undefined);
}

/** Sends an invalid query to a command. */
async function rawQuery(client: FuzzClient, random: Random): Promise<void> {
  const text = random
    .bytes(60)
    .replace(/[^\x21\x24-\x7e]/g, () => random.pick(["%", "%zz", "%00", "&", "=", "+", "%ff", ";"]));
  await client.call(
    random.pick(["version", "resolve", "ls", "cid/format", "files/ls", "refs"]),
    `offline=true&timeout=5s&${text}`,
  );
}

const heads = [
  'Content-Disposition: form-data; name="file"; filename="a"',
  'Content-Disposition: form-data; name="file"; filename="d%2Ff"',
  'Content-Disposition: form-data; name="file"; filename="..%2F..%2Fx"\r\nContent-Type: application/octet-stream',
  'Content-Disposition: form-data; name="file"; filename="%zz"',
  'Content-Disposition: form-data; name="file"; filename="d"\r\nContent-Type: application/x-directory',
  'Content-Disposition: form-data; name="file"; filename="l"\r\nContent-Type: application/symlink',
  'Content-Disposition: form-data; name="file"; filename="a"\r\nAbspath: /etc/passwd',
  'Content-Disposition: form-data; name="file"; filename="a"\r\nmtime: -1\r\nmode: 99999',
  "Content-Disposition: attachment",
  "X-Nothing: a",
  "Content-Type: ;",
];

function anyBody(random: Random): Body {
  if (random.chance(0.4)) return upload(Buffer.from(random.bytes(200), "latin1"), word(random));
  const parts = random.some(4, () => ({ head: random.pick(heads), content: Buffer.from(random.bytes(40), "latin1") }));
  const { type, bytes } = multipart(parts);
  return {
    type: random.chance(0.9) ? type : random.pick(["text/plain", "multipart/form-data", `${type}x`, ""]),
    bytes: damaged(random, bytes),
  };
}

/** Adds files and directories together, and reads them by their paths. */
async function treeOfFiles(client: FuzzClient, random: Random): Promise<void> {
  const files = new Map<string, Buffer>();
  for (const name of random.some(6, () => random.pick(["a", "b", "c", "d/a", "d/b", "d/e/f", "ü", "g h"]))) {
    files.set(name, Buffer.from(random.bytes(random.chance(0.1) ? 3000 : 60), "latin1"));
  }
  const parts = [...files].map(([name, content]) => ({
    head: `Content-Disposition: form-data; name="file"; filename="${encodeURIComponent(name)}"`,
    content,
  }));
  const whole = multipart(parts);
  const options: FuzzQuery = [
    ["wrap-with-directory", "true"],
    ["pin", String(random.chance(0.3))],
    ["chunker", random.pick(["size-17", "size-262144", "rabin-16-32-64", "buzhash"])],
    ["raw-leaves", String(random.chance(0.5))],
    ["trickle", String(random.chance(0.3))],
    ["cid-version", random.pick(["0", "1"])],
    ["inline", String(random.chance(0.3))],
  ];
  const isWhole = random.chance(0.6);
  const body = isWhole ? whole : { ...whole, bytes: damaged(random, whole.bytes) };
  const { status, values, message } = await client.call("add", options, body);
  if (!isWhole || files.size === 0) return;
  assert.deepEqual([status, message], [200, undefined]);
  const root = (values.at(-1) as { Hash: string }).Hash;
  for (const [name, content] of files) {
    const { bytes } = await client.call("cat", [["arg", `${root}/${name}`]]);
    assert.ok(bytes.equals(content), `${name} of ${root} reads otherwise than it was sent`);
  }
}

/**
 * Imports archives of blocks: each is stored completely or rejected. Stored ones are exported
 * unchanged.
 */
async function car(client: FuzzClient, random: Random): Promise<void> {
  const made = await archive(random);
  const sent = random.chance(0.3) ? made.bytes : damaged(random, made.bytes);
  const { status, values, message } = await client.call("dag/import", [["pin-roots", "true"]], upload(sent));
  if (sent.equals(made.bytes)) assert.deepEqual([status, message], [200, undefined]);
  if (message !== undefined) return;
  for (const { Root } of values as readonly { Root: { Cid: { "/": string } } }[]) {
    const root = Root.Cid["/"];
    const { bytes } = await client.call("dag/export", [["arg", root]]);
    const reader = await CarReader.fromBytes(bytes);
    assert.deepEqual((await reader.getRoots()).map(String), [root]);
    for await (const block of reader.blocks()) {
      const stored = await client.call("block/get", [["arg", String(block.cid)]]);
      assert.ok(stored.bytes.equals(block.bytes));
    }
    await client.call("pin/rm", [["arg", root]]);
  }
}

const cidIn = (values: readonly unknown[]) => (values[0] as { Cid: { "/": string } }).Cid["/"];

/**
 * Stores nodes in current codecs: the bytes and values are those of the reference implementations
 * of the codecs.
 */
async function nodes(client: FuzzClient, random: Random): Promise<void> {
  const given = random.chance(0.5) ? record(random) : value(random);
  const json = Buffer.from(dagJson.encode(given));
  for (const [format, codec] of [
    ["dag-json", dagJson],
    ["dag-cbor", dagCbor],
  ] as const) {
    const { values, message } = await client.call(
      "dag/put",
      [
        ["input-enc", "dag-json"],
        ["format", format],
      ],
      upload(json),
    );
    assert.equal(message, undefined, `${json}`);
    const { bytes } = await client.call("block/get", [["arg", cidIn(values)]]);
    assert.deepEqual(codec.decode(bytes), dagJson.decode(json));
    assert.equal(bytes.toString("hex"), Buffer.from(codec.encode(given)).toString("hex"), `${json} as ${format}`);
    await client.call("dag/get", [["arg", cidIn(values)]]);
    await client.call("dag/stat", [
      ["arg", cidIn(values)],
      ["timeout", "5s"],
      ["offline", "true"],
    ]);
  }
}

/** Stores damaged nodes: each is rejected, or stored in a form that reads as itself. */
async function damagedNodes(client: FuzzClient, random: Random): Promise<void> {
  const given = record(random);
  const [input, bytes, formats] = random.pick([
    ["json", dagJson.encode(given), ["cbor", "dag-pb"]],
    ["dag-json", dagJson.encode(given), ["dag-json", "dag-cbor"]],
    ["cbor", dagCbor.encode(given), ["cbor", "dag-json"]],
    ["raw", dagCbor.encode(given), ["cbor", "protobuf", "raw"]],
    [
      "protobuf",
      Buffer.from(
        "12340a22122059948439065f29619ef41280cbb932be52c56d99c5966b65e0111239f098bbef12046e616d651804 0a020801".replaceAll(
          " ",
          "",
        ),
        "hex",
      ),
      ["protobuf"],
    ],
  ] as const);
  const format = random.pick<string>(formats);
  const sent = damaged(random, bytes);
  const { values, message } = await client.call(
    "dag/put",
    [
      ["input-enc", input],
      ["format", format],
    ],
    upload(sent),
  );
  if (message !== undefined || values.length === 0) return;
  const cid = cidIn(values);
  const stored = await client.call("block/get", [["arg", cid]]);
  const { message: unreadable } = await client.call("dag/get", [["arg", cid]]);
  // Not every stored value can be written in JSON.
  if (unreadable !== undefined) assert.match(unreadable, /^json: |max depth$/, `${cid} was stored`);
  const raw =
    format === "raw" || format === "dag-json" ? format : input === "json" && format === "dag-pb" ? "protobuf" : format;
  const again = { raw: ["raw", "raw"], "dag-json": ["dag-json", "dag-json"] }[raw] ?? ["raw", raw];
  const second = await client.call(
    "dag/put",
    [
      ["input-enc", again[0] as string],
      ["format", again[1] as string],
    ],
    upload(stored.bytes),
  );
  assert.equal(second.message, undefined, `${cid} cannot be read again`);
  assert.equal(
    (await client.call("block/get", [["arg", cidIn(second.values)]])).bytes.toString("hex"),
    stored.bytes.toString("hex"),
  );
}

const readers = [
  "cat",
  "get",
  "ls",
  "file/ls",
  "refs",
  "resolve",
  "dag/get",
  "dag/resolve",
  "object/get",
  "object/stat",
  "block/stat",
  "pin/add",
  "tar/cat",
];
const pathCommands = ["files/stat", "files/ls", "files/read", "files/mkdir", "files/rm", "files/flush", "files/chcid"];

/** Uses odd paths: one that is accepted has the same meaning in its full form. */
async function paths(client: FuzzClient, random: Random): Promise<void> {
  const text = path(random);
  let full: string | undefined;
  try {
    full = parsePath(text).text;
  } catch {}
  if (full !== undefined) assert.equal(parsePath(full).text, full);
  const responses = await Promise.all(
    [text, ...(full === undefined ? [] : [full])].map((each) =>
      client.call("resolve", [["arg", each], ...Object.entries(alone)]),
    ),
  );
  if (full !== undefined) assert.deepEqual(responses[0]?.values, responses[1]?.values);
  const command = random.pick([...readers, ...pathCommands]);
  const parents: FuzzQuery = command === "files/mkdir" && random.chance(0.5) ? [["parents", "true"]] : [];
  await client.call(command, [["arg", text], ...parents, ...Object.entries(alone)]);
  await client.call(random.pick(["files/cp", "files/mv"]), [
    ["arg", path(random)],
    ["arg", text],
    ...Object.entries(alone),
  ]);
}

const sections = [
  "Fuzz",
  "Fuzz.a",
  "Fuzz.a.b",
  "Routing.Type",
  "Datastore.StorageMax",
  "Swarm",
  "Experimental.FilestoreEnabled",
  "__proto__",
  "Gateway.RootRedirect",
  "a..b",
  "Discovery.MDNS.Enabled",
];

/**
 * Changes the configuration: written values can be read; a damaged document is rejected or stored
 * completely.
 */
async function config(client: FuzzClient, random: Random): Promise<void> {
  const shown = await client.call("config/show");
  const document = JSON.stringify(shown.values[0]);
  try {
    const key = random.pick(sections);
    const json = JSON.stringify(
      random.chance(0.5) ? record(random, 2) : random.pick(["x", 1, true, null, [1]]),
      (_, each) =>
        each instanceof Uint8Array || (typeof each === "object" && each !== null && "multihash" in each) ? null : each,
    );
    const written = await client.call("config", [
      ["arg", key],
      ["arg", json],
      ["json", "true"],
    ]);
    if (written.message === undefined) {
      const read = await client.call("config", [["arg", key]]);
      assert.deepEqual(read.values, written.values);
    }
    const replaced = await client.call("config/replace", [], upload(damaged(random, Buffer.from(document))));
    const now = await client.call("config/show");
    assert.equal(now.message, undefined);
    if (replaced.message !== undefined && written.message !== undefined) {
      assert.deepEqual(now.values, shown.values, "a rejected change has changed something");
    }
  } finally {
    const { message } = await client.call("config/replace", [], upload(document));
    assert.equal(message, undefined, "the shown configuration is not accepted");
  }
}

/** Kinds by name, each with its relative frequency. */
export const kinds: Readonly<Record<string, readonly [weight: number, run: RoundKind]>> = {
  query: [8, query],
  rawQuery: [1, rawQuery],
  multipart: [4, treeOfFiles],
  car: [3, car],
  nodes: [3, nodes],
  damagedNodes: [4, damagedNodes],
  paths: [4, paths],
  config: [1, config],
};
