/** Archives, codecs, paths and response fields at the level 0.43. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, test } from "node:test";
import { CID } from "multiformats/cid";
import { type CarBlock, writeCar } from "#node/content/car/write.ts";
import { sha256 } from "#node/formats/cid/hashes.ts";
import { encodePb } from "#node/formats/dag_pb/dag_pb.ts";
import { makeBlock } from "#node/storage/blockstore/make_block.ts";
import { type RpcHost, startRpc } from "./support.ts";

let host: RpcHost;
before(async () => {
  host = await startRpc({ api_level: "0.43" });
});
after(() => host?.stop());

const codecs = { raw: 0x55, pb: 0x70, cbor: 0x51, dagCbor: 0x71, jose: 0x85, json: 0x0200, bitcoin: 0xb0 };

const block = (codec: keyof typeof codecs, bytes: Uint8Array | string): Promise<CarBlock> =>
  makeBlock(typeof bytes === "string" ? Buffer.from(bytes) : bytes, { codec: codecs[codec], hash: sha256, length: -1 });

async function carOf(roots: readonly CarBlock[], blocks: readonly CarBlock[]) {
  const cids = roots.map(({ cid }) => cid);
  async function* pages() {
    yield blocks;
  }
  return new Uint8Array(Buffer.concat(await Array.fromAsync(writeCar(cids, pages()))));
}

const imported = async (blocks: readonly CarBlock[], query = "") =>
  host.call(`dag/import?${query}`, { car: await carOf(blocks.slice(0, 1), blocks) });

async function refusal(blocks: readonly CarBlock[]) {
  const [status, message] = await host.failure("dag/import", { car: await carOf(blocks.slice(0, 1), blocks) });
  assert.equal(status, 500);
  return String(message);
}

const text = async (path: string) => (await host.call(path)).text;

test("blocks of the codecs json and cbor are imported, pinned, listed, counted, resolved and exported", async () => {
  const leaves = [
    await block("json", '{"a":[1,{"b":2}]}'),
    await block("cbor", Buffer.from("a161618201a1616202", "hex")),
  ];
  for (const leaf of leaves) {
    const { status, text: lines } = await imported([leaf], "stats=true");
    assert.equal(status, 200, lines);
    const { cid } = leaf;
    assert.match(lines, new RegExp(`"${cid}"},"PinErrorMsg":""}}\n{"Stats":{"BlockCount":1,`));
    assert.equal(await text(`refs?arg=${cid}`), "");
    assert.equal(await text(`ls?arg=${cid}`), `{"Objects":[{"Hash":"${cid}","Links":[]}]}\n`);
    assert.match(await text(`dag/stat?progress=false&arg=${cid}`), /"NumBlocks":1/);
    assert.deepEqual(await host.value(`dag/resolve?arg=${cid}/a/0`), { Cid: { "/": String(cid) }, RemPath: "/a/0" });
    assert.deepEqual(await host.failure(`cat?arg=${cid}`), [500, "unknown node type"]);
    assert.match(await text("pin/verify?verbose=true"), new RegExp(`{"Cid":"${cid}","Ok":true}`));
    await host.call(`pin/rm?arg=${cid}`);
    await host.call(`pin/add?arg=${cid}`);
    assert.equal((await host.call("dag/import", { car: await host.bytes(`dag/export?arg=${cid}`) })).status, 200);
  }
});

test("a link in plain JSON is not followed, and a tag in plain CBOR is refused", async () => {
  const { lines } = await host.call("dag/put?store-codec=json&input-codec=json", {
    node: '{"/":"bafkreigh2akiscaildc"}',
  });
  const cid = (lines[0] as { Cid: { "/": string } }).Cid["/"];
  assert.equal(await text(`refs?arg=${cid}`), "");
  assert.equal(await text(`dag/get?arg=${cid}`), '{"/":"bafkreigh2akiscaildc"}');
  const tagged = await block("cbor", Buffer.from("d82a450001550000", "hex"));
  assert.equal(await refusal([tagged]), `import failed at block "${tagged.cid}": unhandled cbor tag 42`);
});

test("plain JSON has a line end after a list or a map, but not after a single value", async () => {
  for (const [node, stored] of [
    ["[]", "[]\n"],
    ["-1", "-1"],
    ['"x"', '"x"'],
    ['{"a":1}', '{\n\t"a": 1\n}\n'],
  ] as const) {
    const { lines } = await host.call("dag/put?store-codec=json", { node });
    const cid = (lines[0] as { Cid: { "/": string } }).Cid["/"];
    assert.equal(Buffer.from(await host.bytes(`block/get?arg=${cid}`)).toString(), stored);
  }
});

test("a folder with a file of another codec is pinned with all its contents", async () => {
  const json = await block("json", "[1]");
  const leaf = await block("raw", "leaf");
  const links = [
    { name: "a.json", size: 3, cid: json.cid },
    { name: "leaf", size: 4, cid: leaf.cid },
  ];
  const folder = await block("pb", encodePb({ data: Buffer.from("0801", "hex"), links }));
  assert.match((await imported([folder, json, leaf])).text, /"PinErrorMsg":""/);
  const [listed] = (await host.value<{ Objects: [{ Links: object[] }] }>(`ls?arg=${folder.cid}`)).Objects;
  assert.deepEqual(
    { ...listed.Links[0] },
    {
      ...{ Name: "a.json", Hash: String(json.cid), Size: 0, Type: 0, Target: "", Mode: 0 },
      ModTime: "0001-01-01T00:00:00Z",
    },
  );
  await host.call("repo/gc");
  assert.equal(await text(`dag/get?arg=${folder.cid}/a.json/0`), "1");
});

test("a dag-jose node shows the bytes of its block as texts, and a link to its payload", async () => {
  const leaf = await block("raw", "leaf");
  const payload = `5824${Buffer.from(leaf.cid.bytes).toString("hex")}`;
  const signed = await block(
    "jose",
    Buffer.from(`a2677061796c6f6164${payload}6a7369676e61747572657381a1697369676e61747572654101`, "hex"),
  );
  assert.match((await imported([signed, leaf])).text, /"PinErrorMsg":""/);
  const value = `{"link":{"/":"${leaf.cid}"},"payload":"${Buffer.from(leaf.cid.bytes).toString("base64url")}","signatures":[{"signature":"AQ"}]}`;
  assert.equal(await text(`dag/get?arg=${signed.cid}`), value);
  assert.equal(await text(`refs?arg=${signed.cid}`), `{"Ref":"${leaf.cid}","Err":""}\n`);
  assert.equal(await text(`dag/get?arg=${signed.cid}/link`), '{"/":{"bytes":"bGVhZg"}}');
  const encrypted = { ciphertext: "AQ", recipients: [{ encrypted_key: "Ag" }] };
  for (const [node, cid] of [
    [value, String(signed.cid)],
    [JSON.stringify(encrypted), undefined],
  ] as const) {
    const { lines } = await host.call("dag/put?store-codec=dag-jose", { node });
    const made = (lines[0] as { Cid: { "/": string } }).Cid["/"];
    if (cid !== undefined) assert.equal(made, cid);
    assert.equal(await text(`dag/get?arg=${made}`), node);
  }
  for (const node of ['{"payload":"AQ","signatures":[]}', '{"x":1}', '{"ciphertext":"="}', "[]"]) {
    assert.equal((await host.failure("dag/put?store-codec=dag-jose", { node }))[0], 500, node);
  }
});

test("an import names the unreadable block, and the last block before a fault of the archive", async () => {
  const one = await block("raw", "one");
  const two = await block("raw", "two");
  const whole = await carOf([one], [one, two]);
  const fault = async (...cars: Uint8Array<ArrayBuffer>[]) =>
    (await host.failure("dag/import", Object.fromEntries(cars.map((car, at) => [`${at}.car`, car]))))[1];
  assert.equal(await fault(whole.subarray(0, -1)), `import failed after block "${one.cid}": unexpected EOF`);
  assert.equal(await fault(whole, whole.subarray(0, -1)), `import failed after block "${one.cid}": unexpected EOF`);
  assert.equal(await fault((await carOf([one], [one])).subarray(0, -1)), "import failed: unexpected EOF");
  const wrong = { cid: two.cid, bytes: Buffer.from("twO") };
  const made = (await block("raw", "twO")).cid;
  assert.equal(
    await refusal([one, wrong]),
    `import failed after block "${one.cid}": mismatch in content integrity, expected: ${two.cid}, got: ${made}`,
  );
  const foreign = await block("bitcoin", "x");
  assert.equal(
    await refusal([one, foreign]),
    `import failed at block "${foreign.cid}": could not choose a decoder: no decoder registered for multicodec code 176 (0xb0)`,
  );
  const json = await block("json", "[1");
  assert.match(await refusal([json]), new RegExp(`^import failed at block "${json.cid}": `));
  const inline = CID.createV1(codecs.raw, {
    code: 0,
    digest: Buffer.alloc(129),
    size: 129,
    bytes: Buffer.concat([Buffer.from("008101", "hex"), Buffer.alloc(129)]),
  });
  assert.match(
    await refusal([{ cid: inline, bytes: Buffer.alloc(129) }]),
    /digest too large: identity digest got 129 bytes, maximum 128/,
  );
});

test("an import without roots or blocks succeeds, and roots that cannot be pinned are named before the counts", async () => {
  const one = await block("raw", "one");
  const two = await block("raw", "not here");
  const counts = (blocks: number) => `{"Stats":{"BlockCount":${blocks},"BlockBytesCount":${3 * blocks}}}\n`;
  assert.equal((await host.call("dag/import?stats=true", { car: await carOf([], [one]) })).text, counts(1));
  assert.deepEqual(await host.call("dag/import", { car: "" }), { status: 200, text: "", lines: [] });
  const unpinned = `{"Root":{"Cid":{"/":"${two.cid}"},"PinErrorMsg":"ipld: could not find ${two.cid}"}}\n`;
  assert.equal(
    (await host.call("dag/import?stats=true", { car: await carOf([two], [one]) })).text,
    `${unpinned}${counts(1)}`,
  );
});

test("an export accepts a path, and its status reports what is missing", async () => {
  const leaf = await block("raw", "exported");
  const node = await block(
    "dagCbor",
    Buffer.from(`a16161d82a582500${Buffer.from(leaf.cid.bytes).toString("hex")}`, "hex"),
  );
  await imported([node, leaf]);
  const alone = Buffer.from(await host.bytes(`dag/export?arg=${leaf.cid}`));
  for (const path of [`${node.cid}/a`, `/ipfs/${node.cid}/a`, `ipfs://${node.cid}/a`, `/ipfs//${node.cid}/./a/`]) {
    assert.deepEqual(Buffer.from(await host.bytes(`dag/export?arg=${path}`)), alone, path);
  }
  const { cid: missing } = await block("raw", "nowhere");
  for (const [path, message] of [
    [`${node.cid}/b`, 'key not found: "b"'],
    [missing, `block was not found locally (offline): ipld: could not find ${missing}`],
    ["bogus", 'invalid path "bogus": path does not have enough components'],
  ]) {
    assert.deepEqual(await host.failure(`dag/export?offline=true&arg=${path}`), [500, message]);
  }
});

test("dag/put, dag/get and dag/import refuse dag-cbor that is not strict", async () => {
  const refused = {
    "9f01ff": "cbor: indefinite-length encoding rejected",
    "7f6161ff": "cbor: indefinite-length encoding rejected",
    "1801": "cbor: integer not minimally encoded",
    "580161": "cbor: integer not minimally encoded",
    "0100": "unexpected content after end of cbor object",
    fb7ff8000000000000: "cbor: NaN float value rejected",
    f97c00: "cbor: infinite float value rejected",
    [`${"81".repeat(1025)}01`]: "message structure exceeded maximum nesting depth",
    c14101: "unhandled cbor tag 1",
  };
  for (const [hex, message] of Object.entries(refused)) {
    const { cid, bytes } = await block("dagCbor", Buffer.from(hex, "hex"));
    const node = new Uint8Array(bytes);
    assert.deepEqual(await host.failure("dag/put?input-codec=dag-cbor", { node }), [500, message], hex);
    assert.equal((await host.call("block/put?cid-codec=dag-cbor", { node })).status, 200);
    assert.deepEqual(await host.failure(`dag/get?arg=${cid}`), [500, message]);
    assert.equal(await refusal([{ cid, bytes }]), `import failed at block "${cid}": ${message}`);
  }
  const accepted = {
    c0617a: '"z"',
    f93c00: "1.0",
    f7: "null",
    a2616201616101: '{"a":1,"b":1}',
    [`${"81".repeat(1024)}01`]: undefined,
  };
  for (const [hex, value] of Object.entries(accepted)) {
    const { lines } = await host.call("dag/put?input-codec=dag-cbor", {
      node: new Uint8Array(Buffer.from(hex, "hex")),
    });
    const { Cid } = lines[0] as { Cid: { "/": string } };
    if (value !== undefined) assert.equal(await text(`dag/get?arg=${Cid["/"]}`), value);
  }
});

test("a path that leads nowhere fails with Kubo's message", async () => {
  const leaf = await block("raw", "end");
  const hex = Buffer.from(leaf.cid.bytes).toString("hex");
  const node = await block("dagCbor", Buffer.from(`a2616cd82a582500${hex}61768101`, "hex"));
  await imported([node, leaf]);
  const wrongKind = (kind: string) =>
    `func called on wrong kind: "LookupBySegment" called on a ${kind} node (kind: ${kind}), but only makes sense on map or list`;
  const empty = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
  for (const [path, message] of [
    [`${node.cid}/none`, 'key not found: "none"'],
    [`${node.cid}/v/9`, 'key not found: "9"'],
    [`${node.cid}/v/x`, 'invalid segment for lookup on a list: "x": strconv.ParseInt: parsing "x": invalid syntax'],
    [`${node.cid}/v/0/x`, wrongKind("int")],
    [`${node.cid}/l/x`, wrongKind("bytes")],
    [`${empty}/none`, `no link named "none" under ${empty}`],
  ]) {
    for (const command of ["dag/resolve", "dag/get", "resolve"]) {
      assert.deepEqual(await host.failure(`${command}?arg=${path}`), [500, message], `${command} ${path}`);
    }
  }
});

test("files/rm of a folder fails with Kubo's message", async () => {
  await host.call("files/mkdir?arg=/folder");
  const { lines } = await host.call("files/rm?arg=/folder");
  assert.deepEqual(lines, ["/folder: path is a directory, use -r to remove directories"]);
});

test("CIDs are in the requested base, and responses have exactly the fields of Kubo's", async () => {
  const { cid } = await block("raw", "listed");
  await host.call("block/put", { data: "listed" });
  const hex = `f${Buffer.from(cid.bytes).toString("hex")}`;
  for (const list of ["refs/local", "repo/ls"]) {
    assert.match(await text(`${list}?cid-base=base16`), new RegExp(`{"Ref":"${hex}","Err":""}`));
    assert.deepEqual(await host.failure(`${list}?cid-base=odd`), [500, "unsupported multibase encoding: odd"]);
  }
  assert.match(await text(`dag/stat?progress=false&cid-base=base16&arg=${cid}`), new RegExp(`"Cid":"${hex}"`));
  const empty = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
  const child = `object/patch/add-link?arg=${empty}&arg=x&arg=${empty}`;
  assert.deepEqual(await host.value(child), { Hash: "QmV3SwRtyMFuN1vn37g76HvFtapDePF7cPA6TMgAKKdiXe" });
  const upgraded = { Hash: "bafybeiddtgqegnjqjlotok6iooqsuaegodld746uwqeiufuzxjyyv4hfou" };
  assert.deepEqual(await host.value(`${child}&cid-base=base32`), upgraded);
  assert.deepEqual(Object.keys(await host.value("repo/stat")), [
    "RepoSize",
    "StorageMax",
    "NumObjects",
    "RepoPath",
    "Version",
  ]);
  assert.match(await text("pin/verify?verbose=true"), new RegExp(`^{"Cid":"${empty}","Ok":true}$`, "m"));
});

test("//, . and .. in a path are resolved before its root is looked up", async () => {
  const { cid } = await block("raw", "found");
  await host.call("block/put", { data: "found" });
  for (const path of ["/ipfs//", "/ipfs/./", "/ipfs/../", "/ipfs/x/../", "//ipfs/", "./", "/", "ipfs://", "/ipld//"]) {
    assert.deepEqual(
      await host.value(`resolve?arg=${path}${cid}`),
      { Path: `/${path.includes("ipld") ? "ipld" : "ipfs"}/${cid}` },
      path,
    );
  }
  assert.match(String((await host.failure(`resolve?arg=ipfs/${cid}`))[1]), /does not have enough components/);
  const foreign = `http://example.com/ipfs/${cid}`;
  const message = `invalid path "${foreign}": path does not have enough components`;
  assert.deepEqual(await host.failure(`resolve?arg=${foreign}`), [500, message]);
  for (const from of [`ipfs://${cid}`, `/ipfs//${cid}`]) {
    assert.equal((await host.call(`files/cp?force=true&arg=${from}&arg=/copied`)).status, 200);
    assert.equal((await host.value("files/stat?arg=/copied")).Hash, String(cid), "paths of files are as they were");
  }
});

test("files/cp and files/stat resolve paths below /ipns", async () => {
  const { lines } = await host.call("add", { f: "named" });
  const { Hash: cid } = lines[0] as { Hash: string };
  const { Name: name } = await host.value(`name/publish?arg=/ipfs/${cid}&allow-offline=true`);
  assert.equal((await host.value(`files/stat?arg=/ipns/${name}`)).Hash, cid);
  assert.equal((await host.call(`files/cp?arg=/ipns/${name}&arg=/by-name`)).status, 200);
  assert.equal((await host.value("files/stat?arg=/by-name")).Hash, cid);
});

test("files/write with hash=identity inlines at most 128 bytes into a CID", async () => {
  const write = (query: string, size: number) => host.call(`files/write?${query}`, { f: "a".repeat(size) });
  const made = "create=true&hash=identity&cid-version=1&arg=";
  const refused = (size: number) => [500, `digest too large: identity digest got ${size} bytes, maximum 128`];
  assert.deepEqual(await host.failure(`files/write?${made}/raw`, { f: "a".repeat(129) }), refused(129));
  assert.equal((await write(`${made}/raw`, 128)).status, 200);
  assert.match(String((await host.value("files/stat?arg=/raw")).Hash), /^bafkqb/);
  assert.deepEqual(await host.failure("files/write?arg=/raw&offset=128", { f: "a".repeat(200) }), refused(200));
  assert.equal((await write(`${made}/nodes&raw-leaves=false`, 300)).status, 200);
  // The leaf has a digest; the small root is inlined.
  assert.match(String((await host.value("files/stat?arg=/nodes")).Hash), /^bafyaa.{80,100}$/);
  assert.equal((await host.call("files/read?arg=/nodes")).text, "a".repeat(300));
});

test("a name of pins is refused if nothing is pinned, even an empty one", async () => {
  for (const query of ["pin=false&pin-name=", "pin=false&pin-name=x", "only-hash=true&pin-name="]) {
    const message = "pin-name option requires pin to be set";
    assert.deepEqual(await host.failure(`add?${query}`, { f: "1" }), [500, message], query);
  }
});

test("block/put refuses a digest that is longer than its hash function produces", async () => {
  const message = "invalid cid: requested length was too large for digest";
  for (const query of ["mhlen=33", "mhlen=33&format=protobuf", "mhtype=shake-256&mhlen=65"]) {
    assert.deepEqual(await host.failure(`block/put?${query}`, { f: "1" }), [500, message], query);
  }
});

test("keys of a fixed size accept no other size, and ECDSA keys need a flag", async () => {
  for (const type of ["ed25519", "secp256k1"]) {
    for (const size of [0, 77, 2048]) {
      const message = `invalid key size ${size}: ${type} keys are always 256 bits`;
      assert.deepEqual(await host.failure(`key/gen?arg=sized&type=${type}&size=${size}`), [500, message]);
    }
    for (const size of [-1, 256])
      assert.equal((await host.call(`key/gen?arg=${type}${size}&type=${type}&size=${size}`)).status, 200);
  }
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const pem = { key: privateKey.export({ format: "pem", type: "pkcs8" }) as string };
  const call = "key/import?arg=ecdsa&format=pem-pkcs8-cleartext";
  assert.match(
    String((await host.failure(call, pem))[1]),
    /^key type \*crypto.ECDSAPrivateKey is not allowed to be imported/,
  );
  assert.equal((await host.call(`${call}&allow-any-key-type=true`, pem)).status, 200);
  const bytes = { key: await host.bytes("key/export?arg=ecdsa") };
  assert.equal((await host.failure("key/import?arg=again", bytes))[0], 500);
  assert.equal((await host.call("key/import?arg=again&allow-any-key-type=true", bytes)).status, 200);
});

test("add accepts and refuses chunkers like Kubo, and refuses to inline nodes over 128 bytes", async () => {
  const add = (options: string, size = 1000) => host.call(`add?only-hash=true&${options}`, { f: "x".repeat(size) });
  const message = "incorrect chunker string format (expected size-{size})";
  for (const chunker of ["size-100-200", "size-5-", "size--5", "size"]) {
    assert.match((await add(`chunker=${chunker}`)).text, new RegExp(RegExp.escape(message)), chunker);
  }
  const whole = (await add("")).text;
  for (const chunker of ["buzhash-7", "buzhash-", "", "default", "size-2000"]) {
    assert.equal((await add(`chunker=${chunker}`)).text, whole, chunker);
  }
  assert.equal((await add("hash=")).text, whole);
  assert.equal((await add("hash=identity", 128)).status, 200);
  assert.match((await add("hash=identity", 129)).text, /digest too large: identity digest got 129 bytes, maximum 128/);
  assert.match((await add("hash=identity&chunker=size-100", 300)).text, /digest too large/);
});

test("with offline, another peer has only its ID, and a missing record is an error", async () => {
  const peer = "QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN";
  assert.deepEqual(await host.value(`id?offline=true&arg=${peer}`), {
    ...{ ID: peer, PublicKey: "", Addresses: [`/p2p/${peer}`], AgentVersion: "", Protocols: null },
  });
  assert.match(
    String((await host.failure(`id?arg=${peer}`))[1]),
    /^'ipfs id' cannot query information on remote peers/,
  );
});
