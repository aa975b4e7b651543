/** Records of names, and paths as URIs, at both levels. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type RpcHost, startRpc } from "./support.ts";

const empty = "/ipfs/bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354";

let then: RpcHost;
let now: RpcHost;
before(async () => {
  then = await startRpc({});
  now = await startRpc({ api_level: "0.43" });
});
after(async () => {
  await now?.stop();
  await then?.stop();
});

test("a path may be a URI at 0.43, but not at 0.9", async () => {
  const { status, lines } = await now.call("ls?arg=ipfs:bafkqaaa");
  assert.deepEqual([status, lines], [200, [{ Objects: [{ Hash: "ipfs:bafkqaaa", Links: [] }] }]]);
  assert.equal((await now.call("cat?arg=IPFS://bafkqabi")).status, 500);
  assert.deepEqual(await now.failure("ls?arg=ipfs://"), [
    500,
    'invalid path "/ipfs/": path does not have enough components',
  ]);
  for (const [command, text] of [
    ["ls", "ipfs://bafkqaaa"],
    ["pin/add", "ipfs:bafkqaaa"],
  ]) {
    const message = `invalid path "${text}": selected encoding not supported`;
    assert.deepEqual(await then.failure(`${command}?arg=${text}`), [500, message]);
  }
});

test("a record published at 0.43 has the requested sequence and signatures", async () => {
  const publish = (query: string) => now.call(`name/publish?arg=${empty}&allow-offline=true&${query}`);
  const inspected = async () => {
    const { lines } = await publish("");
    const [{ Name: name }] = lines as [{ Name: string }];
    const record = await now.bytes(`name/get?arg=${name}`);
    const outcomeOf = await now.call(`name/inspect?dump=false&verify=${name}`, { record });
    return outcomeOf.lines[0] as {
      Entry: { Sequence: number; TTL: number };
      SignatureType: string;
      Validation: unknown;
    };
  };
  await publish("sequence=7");
  const both = await inspected();
  assert.deepEqual([both.Entry.Sequence, both.Entry.TTL, both.SignatureType], [7, 300_000_000_000, "V1+V2"]);
  await publish("sequence=9&v1compat=false&lifetime=96h");
  const one = await inspected();
  assert.deepEqual([one.Entry.Sequence, one.SignatureType], [9, "V2"]);
  assert.deepEqual((one.Validation as { Valid: boolean }).Valid, true);
  assert.equal((await now.call("name/resolve")).lines.length, 1);
  assert.deepEqual(await now.failure(`name/publish?arg=${empty}&allow-offline=true&sequence=9`), [
    500,
    "sequence number must be greater than the current record sequence",
  ]);
});

test("a record that was signed elsewhere is stored, and an older one is refused", async () => {
  const [{ Name: name }] = (await now.call(`name/publish?arg=${empty}&allow-offline=true&sequence=20`)).lines as [
    { Name: string },
  ];
  const older = await now.bytes(`name/get?arg=${name}`);
  await now.call(`name/publish?arg=/ipfs/bafkqaaa&allow-offline=true&resolve=false`);
  const newer = await now.bytes(`name/get?arg=${name}`);
  const put = (record: Uint8Array<ArrayBuffer>, query = "") =>
    then.call(`name/put?arg=${name}&allow-offline=true${query}`, { record });
  const response = (path: string) => [200, [{ Name: name, Value: path }]];
  const outcomeOf = async (call: ReturnType<typeof put>) => [(await call).status, (await call).lines];
  assert.deepEqual(await outcomeOf(put(older)), response(empty));
  assert.deepEqual(await outcomeOf(put(newer)), response("/ipfs/bafkqaaa"));
  const order = "existing IPNS record has sequence 21 >= new record sequence 20";
  assert.deepEqual(await then.failure(`name/put?arg=${name}&allow-offline=true`, { older }), [
    500,
    `${order}, use 'ipfs name put --force' to skip this check`,
  ]);
  assert.deepEqual(await outcomeOf(put(older, "&force=true")), response(empty));
  assert.deepEqual(await then.bytes(`name/get?arg=${name}`), newer);
});

test("routing/put stores the record of a name on an offline node if that is allowed", async () => {
  const { Name: name } = (await now.call(`name/publish?arg=${empty}&allow-offline=true&sequence=40`)).lines[0] as {
    Name: string;
  };
  const record = await now.bytes(`name/get?arg=${name}`);
  const put = `routing/put?arg=/ipns/${name}`;
  const refused = [500, "can't put while offline: pass `--allow-offline` to override"];
  assert.deepEqual(await then.failure(put, { record }), refused);
  assert.deepEqual((await then.call(`${put}&allow-offline=true`, { record })).lines, [
    { Extra: "", ID: (await now.value<{ ID: string }>("id")).ID, Responses: null, Type: 5 },
  ]);
  assert.deepEqual(await then.bytes(`name/get?arg=${name}`), record);
});
