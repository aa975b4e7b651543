/** A working call of every endpoint on a new repo. The calls are made in this order. */
import type { LevelName } from "#modules/mod_http_api/rpc/levels.ts";

/**
 * Results of earlier calls: the last value of each, by path. `other` is the `id` of another node,
 * which is not connected yet.
 */
export type EarlierResults = Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;

export type CallFiles = Readonly<Record<string, string | Uint8Array>>;

type Options = Readonly<Record<string, string>>;

export interface EndpointCall {
  readonly args?: readonly string[] | ((results: EarlierResults) => readonly string[]);
  readonly options?: Options | ((results: EarlierResults) => Options);
  /** Content of files in the body, by name. */
  readonly files?: CallFiles | ((results: EarlierResults) => CallFiles);
  /**
   * The call has to fail with a message that matches: there is no other node to work with, or the
   * operator has not allowed it.
   */
  readonly fails?: RegExp;
  /** The response continues until the client disconnects: only its beginning is checked. */
  readonly endless?: boolean;
}

/** Exists in every new repo, and is pinned there. */
const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
/** The file that `add` adds below. */
const hello = "QmZULkCELmmk5XNfCgTnCyFgAVxBRBXyDHGGMVoLFLiXEN";
const peer = "QmaCpDMGvV2BGHeYERUEnRQAwe3N8SzbUtfsmvsqQLuvuJ";
const address = `/ip4/127.0.0.1/tcp/9/p2p/${peer}`;
/** The other node, and its address. */
const other = (results: EarlierResults) => String(results.other?.ID);
const otherAddress = (results: EarlierResults) =>
  String((results.other?.Addresses as readonly string[] | undefined)?.[0]);
const service = { service: "surface" };
/** The empty directory as a CAR file. */
const car = Buffer.from(
  "OKJlcm9vdHOB2CpYIwASIFmUhDkGXylhnvQSgMu5Mr5SxW2ZxZZrZeAREjnwmLvvZ3ZlcnNpb24BJhIgWZSEOQZfKWGe9BKAy7kyvlLFbZnFlmtl4BESOfCYu+8KAggB",
  "base64",
);
/** The file of an ed25519 key. */
const keyFile = Buffer.from(
  "CAESQAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=",
  "base64",
);
const noService = /empty response from remote pinning service/;

const ofHello: EndpointCall = { args: [hello] };
const ofDirectory: EndpointCall = { args: [emptyDirectory] };
const nothing: EndpointCall = {};

export const calls: Readonly<Record<string, EndpointCall>> = {
  add: { options: { progress: "true", pin: "false" }, files: { hello: "hello\n" } },
  cat: ofHello,
  get: ofHello,
  ls: ofDirectory,
  "file/ls": ofDirectory,
  refs: ofDirectory,
  "refs/local": nothing,
  resolve: { args: [`/ipfs/${hello}`] },

  "block/put": { files: { data: "a block" } },
  "block/get": { args: (results) => [String(results["block/put"]?.Key)] },
  "block/stat": { args: (results) => [String(results["block/put"]?.Key)] },
  "block/rm": { args: (results) => [String(results["block/put"]?.Key)] },

  "cid/base32": ofHello,
  "cid/bases": nothing,
  "cid/codecs": nothing,
  "cid/format": { args: [hello], options: { f: "%v-%c-%h" } },
  "cid/hashes": nothing,

  commands: { options: { flags: "true" } },
  version: nothing,
  "version/deps": nothing,
  id: nothing,

  config: { args: ["Experimental.Libp2pStreamMounting", "true"], options: { bool: "true" } },
  "config/show": nothing,
  "config/profile/apply": { args: ["test"], options: { "dry-run": "true" } },
  "config/replace": { files: (results) => ({ config: JSON.stringify(results["config/show"]) }) },
  "config/edit": { fails: /api_config_edit/ },

  "diag/cmds": nothing,
  "diag/cmds/clear": nothing,
  "diag/cmds/set-time": { args: ["1m"] },
  "diag/sys": nothing,
  "log/level": { args: ["all", "error"] },
  "log/ls": nothing,
  "log/tail": { endless: true },

  "pin/ls": nothing,
  "pin/verify": { options: { verbose: "true" } },
  "pin/update": { args: [emptyDirectory, hello], options: { unpin: "false" } },
  "pin/add": ofHello,
  "pin/rm": ofHello,

  "repo/fsck": nothing,
  "repo/gc": nothing,
  "repo/stat": nothing,
  "repo/verify": nothing,
  "repo/version": nothing,
  "stats/repo": nothing,

  "dag/export": ofDirectory,
  "dag/get": ofDirectory,
  "dag/import": { files: { car } },
  "dag/put": { files: { node: '{"a":1}' } },
  "dag/resolve": ofDirectory,
  "dag/stat": ofDirectory,

  "object/new": { args: ["unixfs-dir"] },
  "object/data": ofDirectory,
  "object/diff": { args: [emptyDirectory, emptyDirectory] },
  "object/get": ofDirectory,
  "object/links": ofDirectory,
  "object/put": { files: { node: '{"Data":"a"}' } },
  "object/stat": ofDirectory,
  "object/patch/add-link": { args: [emptyDirectory, "a", emptyDirectory] },
  "object/patch/append-data": { args: [emptyDirectory], files: { data: "a" } },
  "object/patch/rm-link": { args: [emptyDirectory, "a"], fails: /no link by that name/ },
  "object/patch/set-data": { args: [emptyDirectory], files: { data: "a" } },

  "files/mkdir": { args: ["/a"] },
  "files/write": { args: ["/a/file"], options: { create: "true" }, files: { data: "written" } },
  "files/read": { args: ["/a/file"] },
  "files/stat": { args: ["/a/file"], options: { "with-local": "true" } },
  "files/ls": { args: ["/a"], options: { long: "true" } },
  "files/cp": { args: ["/a/file", "/a/copy"] },
  "files/mv": { args: ["/a/copy", "/a/moved"] },
  "files/chcid": { args: ["/a"], options: { "cid-version": "1" } },
  "files/rm": { args: ["/a/moved"] },
  "files/flush": { args: ["/a"] },

  "filestore/dups": { fails: /filestore is not enabled/ },
  "filestore/ls": { fails: /filestore is not enabled/ },
  "filestore/verify": { fails: /filestore is not enabled/ },
  "urlstore/add": { args: ["http://127.0.0.1:9/"], fails: /must be enabled/ },
  "tar/add": { files: { tar: "\0".repeat(1024) } },
  "tar/cat": { args: (results) => [String(results["tar/add"]?.Hash)] },

  "key/gen": { args: ["surface"] },
  "key/list": { options: { l: "true" } },
  "key/export": { args: ["surface"] },
  "key/rename": { args: ["surface", "renamed"] },
  "key/rm": { args: ["renamed"] },
  "key/import": { args: ["imported"], files: { key: keyFile } },
  "key/rotate": { options: { oldkey: "former" } },

  "name/publish": { args: [`/ipfs/${emptyDirectory}`], options: { "allow-offline": "true", offline: "true" } },
  "name/resolve": { options: { offline: "true" } },
  "name/pubsub/state": nothing,
  "name/pubsub/subs": nothing,
  "name/pubsub/cancel": { args: [peer] },
  dns: { args: ["localhost"], options: { timeout: "5s" }, fails: /could not resolve name/ },

  bootstrap: nothing,
  "bootstrap/add": { args: [address] },
  "bootstrap/list": nothing,
  "bootstrap/rm": { args: [address] },
  "bootstrap/add/default": nothing,
  "bootstrap/rm/all": nothing,

  "swarm/addrs": nothing,
  "swarm/addrs/listen": nothing,
  "swarm/addrs/local": { options: { id: "true" } },
  "swarm/connect": { args: (results) => [otherAddress(results)] },
  "swarm/filters": nothing,
  "swarm/filters/add": { args: ["/ip4/192.0.2.0/ipcidr/24"] },
  "swarm/filters/rm": { args: ["/ip4/192.0.2.0/ipcidr/24"] },
  "swarm/peers": { options: { verbose: "true" } },
  ping: { args: (results) => [other(results)], options: { count: "1" } },

  "dht/findpeer": { args: (results) => [other(results)] },
  "dht/provide": { args: [emptyDirectory], options: { verbose: "true" } },
  "dht/findprovs": { args: [emptyDirectory], options: { "num-providers": "1" } },
  "dht/get": { args: [`/ipns/${peer}`], fails: /routing: not found/ },
  "dht/put": { args: [`/ipns/${peer}`], files: { record: "none" }, fails: /record could not be unmarshalled/ },
  "dht/query": { args: (results) => [other(results)], options: { verbose: "true" } },

  "bitswap/ledger": { args: (results) => [other(results)] },
  "bitswap/reprovide": nothing,
  "bitswap/stat": nothing,
  "bitswap/wantlist": nothing,
  "stats/bitswap": nothing,
  "stats/bw": nothing,
  "stats/dht": nothing,
  "swarm/disconnect": { args: (results) => [otherAddress(results)] },
  "stats/provide": { fails: /AcceleratedDHTClient/ },

  "pubsub/ls": nothing,
  "pubsub/peers": nothing,
  "pubsub/pub": { args: ["surface", "a message"] },
  "pubsub/sub": { args: ["surface"], endless: true },

  "p2p/listen": { args: ["/x/surface", "/ip4/127.0.0.1/tcp/9"] },
  "p2p/forward": { args: (results) => ["/x/surface", "/ip4/127.0.0.1/tcp/0", `/p2p/${other(results)}`] },
  "p2p/ls": { options: { headers: "true" } },
  "p2p/stream/ls": nothing,
  "p2p/stream/close": { options: { all: "true" } },
  "p2p/close": { options: { all: "true" } },

  "pin/remote/service/add": { args: ["surface", "http://127.0.0.1:9/api", "a key"] },
  "pin/remote/service/ls": { options: { stat: "true" } },
  "pin/remote/add": { args: [hello], options: service, fails: noService },
  "pin/remote/ls": { options: service, fails: noService },
  "pin/remote/rm": { options: service, fails: noService },
  "pin/remote/service/rm": { args: ["surface"] },

  mount: { fails: /mountpoint does not exist/ },
  update: nothing,
  shutdown: nothing,
};

const removed: EndpointCall = { fails: /removed, use 'ipfs (dag' or 'ipfs files|routing)' instead$/ };

/** Calls that are new at level 0.43, or have another result there. */
const laterCalls: Readonly<Record<string, EndpointCall>> = {
  ...Object.fromEntries(
    Object.keys(calls).flatMap((path) =>
      /^(object\/(data|get|links|new|put|stat|patch\/(append|set)-data)|dht\/(?!query))/.test(path)
        ? [[path, removed]]
        : [],
    ),
  ),
  "object/patch/rm-link": { args: [emptyDirectory, "a"], fails: /no link by that name|not found/ },
  "bitswap/reprovide": { fails: /manual reprovide is not available/ },
  "cid/inspect": ofHello,
  "diag/healthy": nothing,
  "diag/profile": { options: { "profile-time": "0s", collectors: "version" } },
  "files/chmod": { args: ["0644", "/a/file"] },
  "files/touch": { args: ["/a/file"], options: { mtime: "1" } },
  "key/ls": { options: { l: "true" } },
  "key/sign": { files: { data: "signed" } },
  "key/verify": {
    options: (results) => ({ signature: String(results["key/sign"]?.Signature) }),
    files: { data: "signed" },
  },
  "multibase/encode": { files: { file: "hello" } },
  "multibase/decode": { files: { file: "uaGVsbG8" } },
  "multibase/transcode": { files: { file: "uaGVsbG8" }, options: { b: "base32" } },
  "multibase/list": nothing,
  "name/get": { args: (results) => [String(results["name/publish"]?.Name)] },
  "name/put": {
    args: (results) => [String(results["name/publish"]?.Name)],
    files: { record: "" },
    fails: /record is empty/,
  },
  "name/inspect": { files: { record: "none" }, fails: /record is malformed/ },
  "provide/clear": nothing,
  "provide/once": { args: [emptyDirectory], fails: /no connected peers|not available/ },
  "provide/stat": nothing,
  "pubsub/ls": nothing,
  "pubsub/peers": nothing,
  "pubsub/pub": { args: ["uaGVsbG8"], files: { data: "a message" } },
  "pubsub/sub": { args: ["uaGVsbG8"], endless: true },
  "pubsub/reset": nothing,
  "repo/ls": nothing,
  "routing/findpeer": { args: (results) => [other(results)], fails: /routing: not found/ },
  "routing/findprovs": { args: [emptyDirectory], options: { "num-providers": "1" } },
  "routing/get": { args: (results) => [`/ipns/${results["name/publish"]?.Name}`], fails: /routing: not found/ },
  "routing/put": { args: [`/ipns/${peer}`], files: { record: "none" }, fails: /./ },
  "routing/provide": { args: [emptyDirectory], options: { verbose: "true" }, fails: /no connected peers/ },
  "routing/reprovide": { fails: /manual reprovide is not available/ },
  "stats/provide": { fails: /AcceleratedDHTClient/ },
  "stats/reprovide": nothing,
  "swarm/addrs/autonat": nothing,
  "swarm/peering/add": { args: [address] },
  "swarm/peering/ls": nothing,
  "swarm/peering/rm": { args: [peer] },
  "swarm/resources": nothing,
  "version/check": { fails: /missing or incompatible DHT configuration/ },
};

/** Returns the calls in the order in which they are made. The call that ends the server is last. */
export function callsAt(level: LevelName): Readonly<Record<string, EndpointCall>> {
  if (level === "0.9") return calls;
  const { shutdown, ...then } = calls as Readonly<Record<string, EndpointCall>> & { readonly shutdown: EndpointCall };
  return { ...then, ...laterCalls, shutdown };
}
