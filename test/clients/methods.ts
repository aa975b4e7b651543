/** Every method that the client libraries have: a use of it, or why there is none. */
import assert from "node:assert/strict";
import { CID } from "multiformats/cid";
import { networkMethods } from "./network_methods.ts";
import { cidOf, elsewhere, gives, holds, type Line, local, malformed, type Plain, type Use } from "./use.ts";

const text = "driven by a client\n";
const bytes = new TextEncoder().encode(text);
const empty = CID.parse("QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn");

/** Which commands it has, and which ran. */
const aboutServer = "about the server of the RPC";

async function* archive(use: Use): AsyncGenerator<Uint8Array> {
  yield Buffer.from(String(use.kept.get("car")), "latin1");
}

/** In this order; the last one ends the server. */
export const methods: Readonly<Record<string, Line>> = {
  add: async ({ call, kept }) => {
    const added = await call("add", { path: "text", content: bytes });
    holds(added, { path: "text", size: 27 });
    kept.set("text", String(cidOf(added)));
  },
  addAll: async ({ call, kept }) => {
    const files = ["d/a", "d/b"].map((path) => ({ path, content: bytes }));
    const added = (await call("addAll", files)) as { path: string; cid: string }[];
    assert.deepEqual(
      added.map(({ path }) => path),
      ["d/a", "d/b", "d"],
    );
    kept.set("folder", added.at(-1)?.cid as string);
  },
  cat: async ({ call, kept }) => holds(await call("cat", cidOf(kept.get("text")), { offset: 7 }), [text.slice(7)]),
  get: async ({ call, kept }) => assert.ok(String(await call("get", cidOf(kept.get("text")))).includes(text)),
  ls: async ({ call, kept }) =>
    holds(await call("ls", cidOf(kept.get("folder"))), [{ name: "a" }, { name: "b", size: 19 }]),
  refs: async ({ call, kept }) => holds(await call("refs", cidOf(kept.get("folder"))), /"ref":"Qm/),
  resolve: async ({ call, kept }) =>
    holds(await call("resolve", `/ipfs/${kept.get("text")}`), `/ipfs/${kept.get("text")}`),
  id: gives("id", [], /"agentVersion":"modhost\//),
  version: gives("version", [], { version: "0.9.0", repo: "11" }),
  commands: { why: aboutServer, overHttp: gives("commands", [], /"Name":"repo"/) },
  isOnline: async ({ call }) => assert.equal(typeof (await call("isOnline")), "boolean"),
  start: local,
  getEndpointConfig: local,

  "block.put": async ({ call, kept }) => {
    const put = await call("block.put", bytes);
    kept.set("block", String(cidOf(put)));
  },
  "block.get": async ({ call, kept }) => holds(await call("block.get", cidOf(kept.get("block"))), text),
  "block.stat": async ({ call, kept }) => holds(await call("block.stat", cidOf(kept.get("block"))), { size: 19 }),
  "block.rm": async ({ call, kept }) =>
    holds(await call("block.rm", cidOf(kept.get("block"))), [{ cid: kept.get("block") }]),

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

  "dag.put": async ({ call, kept }) => {
    const put = await call("dag.put", { one: 1, link: empty }, { storeCodec: "dag-cbor" });
    kept.set("node", String(put));
    assert.match(String(put), /^bafy/);
  },
  "dag.get": async ({ call, kept }) =>
    holds(await call("dag.get", cidOf(kept.get("node"))), { value: { one: 1, link: String(empty) } }),
  "dag.resolve": async ({ call, kept }) =>
    holds(await call("dag.resolve", cidOf(kept.get("node")), { path: "/one" }), {
      cid: kept.get("node"),
      remainderPath: "one",
    }),
  "dag.export": async ({ call, kept }) => {
    const car = (await call("dag.export", cidOf(kept.get("node")))) as string[];
    kept.set("car", car.join(""));
    assert.match(car.join(""), /roots/);
  },
  "dag.import": async (use) =>
    holds(await use.call("dag.import", archive(use)), [{ root: { cid: use.kept.get("node") } }]),

  "object.new": gives("object.new", [{ template: "unixfs-dir" }], String(empty)),
  "object.put": async ({ call, kept }) => void kept.set("object", await call("object.put", { Data: bytes, Links: [] })),
  "object.get": async ({ call, kept }) =>
    holds(await call("object.get", cidOf(kept.get("object"))), { Data: text, Links: [] }),
  "object.data": async ({ call, kept }) => holds(await call("object.data", cidOf(kept.get("object"))), text),
  "object.links": gives("object.links", [empty], []),
  "object.stat": async ({ call, kept }) =>
    holds(await call("object.stat", cidOf(kept.get("object"))), { DataSize: 19 }),
  "object.patch.addLink": async ({ call, kept }) => {
    const link = { Name: "l", Hash: empty, Tsize: 4, name: "l", cid: empty, size: 4 };
    kept.set("linked", await call("object.patch.addLink", empty, link));
  },
  "object.patch.rmLink": async ({ call, kept }) =>
    holds(await call("object.patch.rmLink", cidOf(kept.get("linked")), { Name: "l", name: "l" }), String(empty)),
  "object.patch.appendData": async ({ call, kept }) => {
    const appended = await call("object.patch.appendData", cidOf(kept.get("object")), bytes);
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
    // The time is part of the node, also where the level does not tell it.
    holds(await call("files.stat", "/driven/file"), { cid: "QmNx8AT9iNeKHRmJ5E47D9qpFwcm8cFcGsQU4MrMT74Qw2" });
  },

  "pin.add": gives("pin.add", [empty], String(empty)),
  "pin.addAll": gives("pin.addAll", [[empty]], [String(empty)]),
  "pin.ls": gives("pin.ls", [{ paths: [empty] }], [{ cid: String(empty), type: "recursive" }]),
  "pin.update": async ({ call, kept }) => {
    const from = cidOf(kept.get("node"));
    const to = cidOf(kept.get("linked"));
    holds(await call("pin.update", from, to, { unpin: true }), [String(from), String(to)]);
  },
  "pin.rm": gives("pin.rm", [empty], String(empty)),
  "pin.rmAll": async ({ call, kept }) => {
    await call("pin.add", cidOf(kept.get("linked")));
    holds(await call("pin.rmAll", [cidOf(kept.get("linked"))]), [String(kept.get("linked"))]);
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
