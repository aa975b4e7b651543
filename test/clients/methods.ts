/** Every method of the client libraries: a use of it, or the reason why there is none. */
import assert from "node:assert/strict";
import { CID } from "multiformats/cid";
import { networkMethods } from "./network_methods.ts";
import { cidOf, elsewhere, gives, holds, local, type MethodLine, malformed, type Plain, type Use } from "./use.ts";

const text = "driven by a client\n";
const bytes = new TextEncoder().encode(text);
const empty = CID.parse("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");

/** Commands that the server has, and commands that ran. */
const aboutServer = "about the server of the RPC";

async function* archive(use: Use): AsyncGenerator<Uint8Array> {
  yield Buffer.from(String(use.results.get("car")), "latin1");
}

/** The methods in the order of their use. The last one ends the server. */
export const methods: Readonly<Record<string, MethodLine>> = {
  add: async ({ call, results }) => {
    const added = await call("add", { path: "text", content: bytes });
    holds(added, { path: "text", size: 27 });
    results.set("text", String(cidOf(added)));
  },
  addAll: async ({ call, results }) => {
    const files = ["d/a", "d/b"].map((path) => ({ path, content: bytes }));
    const added = (await call("addAll", files)) as { path: string; cid: string }[];
    assert.deepEqual(
      added.map(({ path }) => path),
      ["d/a", "d/b", "d"],
    );
    results.set("folder", added.at(-1)?.cid as string);
  },
  cat: async ({ call, results }) =>
    holds(await call("cat", cidOf(results.get("text")), { offset: 7 }), [text.slice(7)]),
  get: async ({ call, results }) => assert.ok(String(await call("get", cidOf(results.get("text")))).includes(text)),
  ls: async ({ call, results }) =>
    holds(await call("ls", cidOf(results.get("folder"))), [{ name: "a" }, { name: "b", size: 19 }]),
  refs: async ({ call, results }) => holds(await call("refs", cidOf(results.get("folder"))), /"ref":"Qm/),
  resolve: async ({ call, results }) =>
    holds(await call("resolve", `/ipfs/${results.get("text")}`), `/ipfs/${results.get("text")}`),
  id: gives("id", [], /"agentVersion":"modhost\//),
  version: gives("version", [], { version: "0.9.0", repo: "11" }),
  commands: { why: aboutServer, overHttp: gives("commands", [], /"Name":"repo"/) },
  isOnline: async ({ call }) => assert.equal(typeof (await call("isOnline")), "boolean"),
  start: local,
  getEndpointConfig: local,

  "block.put": async ({ call, results }) => {
    const put = await call("block.put", bytes);
    results.set("block", String(cidOf(put)));
  },
  "block.get": async ({ call, results }) => holds(await call("block.get", cidOf(results.get("block"))), text),
  "block.stat": async ({ call, results }) => holds(await call("block.stat", cidOf(results.get("block"))), { size: 19 }),
  "block.rm": async ({ call, results }) =>
    holds(await call("block.rm", cidOf(results.get("block"))), [{ cid: results.get("block") }]),

  "config.getAll": gives("config.getAll", [], /"Addresses":\{"API"/),
  "config.get": gives("config.get", ["Routing.Type"], "dht"),
  "config.set": async ({ call }) => {
    await call("config.set", "Gateway.HTTPHeaders.X-Drive", ["x"]);
    holds(await call("config.get", "Gateway.HTTPHeaders.X-Drive"), ["x"]);
  },
  "config.replace": async ({ call }) => {
    const all = (await call("config.getAll")) as Record<string, Plain>;
    await call("config.replace", { ...all, Gateway: { ...(all.Gateway as object), RootRedirect: "/driven" } });
    holds(await call("config.get", "Gateway.RootRedirect"), "/driven");
  },
  "config.profiles.apply": gives("config.profiles.apply", ["lowpower", { dryRun: true }], /"original".*"updated"/),
  "config.profiles.list": elsewhere,

  "dag.put": async ({ call, results }) => {
    const put = await call("dag.put", { one: 1, link: empty }, { storeCodec: "dag-cbor" });
    results.set("node", String(put));
    assert.match(String(put), /^bafy/);
  },
  "dag.get": async ({ call, results }) =>
    holds(await call("dag.get", cidOf(results.get("node"))), { value: { one: 1, link: String(empty) } }),
  "dag.resolve": async ({ call, results }) =>
    holds(await call("dag.resolve", cidOf(results.get("node")), { path: "/one" }), {
      cid: results.get("node"),
      remainderPath: "one",
    }),
  "dag.export": async ({ call, results }) => {
    const car = (await call("dag.export", cidOf(results.get("node")))) as string[];
    results.set("car", car.join(""));
    assert.match(car.join(""), /roots/);
  },
  "dag.import": async (use) =>
    holds(await use.call("dag.import", archive(use)), [{ root: { cid: use.results.get("node") } }]),

  "object.new": gives("object.new", [{ template: "unixfs-dir" }], String(empty)),
  "object.put": async ({ call, results }) =>
    void results.set("object", await call("object.put", { Data: bytes, Links: [] })),
  "object.get": async ({ call, results }) =>
    holds(await call("object.get", cidOf(results.get("object"))), { Data: text, Links: [] }),
  "object.data": async ({ call, results }) => holds(await call("object.data", cidOf(results.get("object"))), text),
  "object.links": gives("object.links", [empty], []),
  "object.stat": async ({ call, results }) =>
    holds(await call("object.stat", cidOf(results.get("object"))), { DataSize: 19 }),
  "object.patch.addLink": async ({ call, results }) => {
    const link = { Name: "l", Hash: empty, Tsize: 4, name: "l", cid: empty, size: 4 };
    results.set("linked", await call("object.patch.addLink", empty, link));
  },
  "object.patch.rmLink": async ({ call, results }) =>
    holds(await call("object.patch.rmLink", cidOf(results.get("linked")), { Name: "l", name: "l" }), String(empty)),
  "object.patch.appendData": async ({ call, results }) => {
    const appended = await call("object.patch.appendData", cidOf(results.get("object")), bytes);
    holds(await call("object.data", cidOf(appended)), text + text);
  },
  "object.patch.setData": async ({ call }) => {
    const set = await call("object.patch.setData", empty, bytes);
    holds(await call("object.data", cidOf(set)), text);
  },

  "files.mkdir": gives("files.mkdir", ["/driven/deep", { parents: true }], undefined),
  "files.write": gives("files.write", ["/driven/file", bytes, { create: true }], undefined),
  "files.read": gives("files.read", ["/driven/file", { offset: 7, length: 2 }], ["by"]),
  "files.stat": gives("files.stat", ["/driven/file"], { size: 19, type: "file" }),
  "files.ls": gives("files.ls", ["/driven"], /"name":"deep".*"name":"file"/),
  "files.cp": gives("files.cp", ["/driven/file", "/driven/copy"], undefined),
  "files.mv": gives("files.mv", ["/driven/copy", "/driven/moved"], undefined),
  "files.flush": gives("files.flush", ["/driven"], /"(Qm|bafy)/),
  "files.rm": async ({ call }) => {
    await call("files.rm", "/driven/moved");
    await assert.rejects(call("files.stat", "/driven/moved"), /file does not exist/);
  },
  "files.chmod": {
    why: malformed,
    overHttp: ({ call }) => assert.rejects(call("files.chmod", "/driven/file", 0o644), /argument ".+" is required/),
  },
  "files.touch": async ({ call }) => {
    await call("files.touch", "/driven/file", { mtime: { secs: 1_600_000_000, nsecs: 7 } });
    // The time is part of the node even at the level that does not report it.
    holds(await call("files.stat", "/driven/file"), { cid: "QmNx8AT9iNeKHRmJ5E47D9qpFwcm8cFcGsQU4MrMT74Qw2" });
  },

  "pin.add": gives("pin.add", [empty], String(empty)),
  "pin.addAll": gives("pin.addAll", [[empty]], [String(empty)]),
  "pin.ls": gives("pin.ls", [{ paths: [empty] }], [{ cid: String(empty), type: "recursive" }]),
  "pin.update": async ({ call, results }) => {
    const from = cidOf(results.get("node"));
    const to = cidOf(results.get("linked"));
    holds(await call("pin.update", from, to, { unpin: true }), [String(from), String(to)]);
  },
  "pin.rm": gives("pin.rm", [empty], String(empty)),
  "pin.rmAll": async ({ call, results }) => {
    await call("pin.add", cidOf(results.get("linked")));
    holds(await call("pin.rmAll", [cidOf(results.get("linked"))]), [String(results.get("linked"))]);
  },

  "key.gen": gives("key.gen", ["driven", { type: "ed25519" }], { name: "driven" }),
  "key.list": gives("key.list", [], /"name":"driven"/),
  "key.info": local,
  "key.rename": gives("key.rename", ["driven", "renamed"], { was: "driven", now: "renamed" }),
  "key.export": local,
  "key.import": {
    why: malformed,
    overHttp: ({ call }) =>
      assert.rejects(call("key.import", "imported", "key", "password"), /file argument 'key' is required/),
  },
  "key.rm": gives("key.rm", ["renamed"], { name: "renamed" }),

  "log.ls": gives("log.ls", [], /./),
  "log.level": gives("log.level", ["all", "error"], { message: "Changed log level of '*' to 'error'\n" }),
  "log.tail": async ({ first, stir }) => {
    let waiting = true;
    const event = first("log.tail").finally(() => (waiting = false));
    event.catch(() => undefined);
    while (waiting) await stir();
    holds(await event, /"event":"[^"]+".*"system":"[^"]+".*"time":"\d{4}-/);
  },
  "diag.cmds": { why: aboutServer, overHttp: gives("diag.cmds", [], /"Command":"version"/) },
  "diag.sys": gives("diag.sys", [], /"diskinfo"/),
  "diag.net": elsewhere,

  "repo.stat": gives("repo.stat", [], /"version":"fs-repo@11"/),
  "repo.version": gives("repo.version", [], "11"),
  "repo.gc": gives("repo.gc", [], /"cid"/),
  "stats.repo": gives("stats.repo", [], /"version":"fs-repo@11"/),
  ...networkMethods,

  stop: gives("stop", [], undefined),
};
