/** Commands to add, read and list content. */
import { gunzipSync } from "node:zlib";
import { missingArgument, type Sweep } from "./line.ts";

const sameOfAdd = (query: string) => ({ call: `add?${query}`, file: "sent as it is", same: true }) as const;
const file = "swept {n}\n";
const leaves =
  (least: number) =>
  ({ text }: { readonly text: string }) => {
    const [, links = "-1"] = /"NumLinks":(\d+)/.exec(text) ?? [];
    return Number(links) >= least;
  };

const facts = "test/unit/modules/mod_node/content/unixfs/mode_and_time.test.ts";
const factsPreserved = {
  test: "entries keep their own mode and time on request, and values for all entries take precedence",
  in: facts,
};

/** The hash that the reference computes for three bytes. */
const made = (query: string, hash: string) => ({ call: `add?${query}`, file: "aaa", shows: new RegExp(hash) });

const searchEnds = "a search ends after the given count of records or the timeout";

const reading: Sweep = {
  add: {
    recursive: sameOfAdd("recursive=true"),
    "dereference-args": sameOfAdd("dereference-args=true"),
    "dereference-symlinks": sameOfAdd("dereference-symlinks=true"),
    "stdin-name": sameOfAdd("stdin-name=x"),
    hidden: sameOfAdd("hidden=true"),
    ignore: sameOfAdd("ignore=*"),
    "ignore-rules-path": sameOfAdd("ignore-rules-path=/x"),
    quiet: { call: "add?quiet=true&encoding=text", file, shows: /^200 47 Qm\w{44}\n$/ },
    quieter: { call: "add?quieter=true&encoding=text", file, shows: /^200 47 Qm\w{44}\n$/ },
    silent: { call: "add?silent=true", file, shows: /^200 0 $/ },
    "pin-name": {
      call: "add?pin-name=named-{n}",
      file,
      after: ["pin/ls?name=named-{n}"],
      shows: ({ text }, { Hash = "" }) => text.includes(Hash),
    },
    mode: made("mode=0644", "QmQmwMTAULVuZd5kisVZ2xgsc81GVu3LvCJL25DrAEGoZg"),
    mtime: made("mtime=1630937926", "QmbtPK9WCdNxToEh32kvemitx3tEnhFSP1sS7Q4ca8aBhc"),
    "mtime-nsecs": made("mtime=1630937926&mtime-nsecs=123456789", "QmVryHZCoBDBx91bkhK6EGyvgr87Kcw5u2q9oYzyt2DTL5"),
    "preserve-mode": factsPreserved,
    "preserve-mtime": factsPreserved,
    "max-file-links": {
      call: "add?max-file-links=2&chunker=size-1",
      file: "four",
      after: ["object/stat?arg={Hash}"],
      shows: /"NumLinks":2,/,
    },
    "max-directory-links": sameOfAdd("max-directory-links=1"),
    "max-hamt-fanout": { call: "add?max-hamt-fanout=7", file, shows: /^500 .*HAMT fanout must be a power of 2/ },
    "empty-dirs": {
      test: "empty directories are left out on request, but not those that become empty by that",
      in: facts,
    },
    "to-files": {
      call: "add?to-files=/added-{n}",
      file,
      after: ["files/read?arg=/added-{n}"],
      shows: /^200 \d+ swept/,
    },
    "fast-provide-root": sameOfAdd("fast-provide-root=false"),
    "fast-provide-dag": sameOfAdd("fast-provide-dag=true"),
    "fast-provide-wait": {
      test: "an add that waits for its announcement fails after its lines if there are no peers",
      in: "test/unit/modules/mod_http_api/commands/announcing.test.ts",
    },
    progress: { call: "add?progress=true", file, shows: /"Bytes":\d+\}\n/ },
    trickle: {
      call: "add?trickle=true&chunker=size-1",
      file: "x".repeat(2000),
      after: ["object/stat?arg={Hash}"],
      shows: leaves(100),
    },
    "only-hash": { call: "add?only-hash=true", file, after: ["block/stat?arg={Hash}&offline=true"], shows: /^500 / },
    "wrap-with-directory": { call: "add?wrap-with-directory=true", file, shows: /\n\{"Name":"","Hash"/ },
    chunker: { call: "add?chunker=size-3", file, after: ["object/stat?arg={Hash}"], shows: leaves(2) },
    pin: { call: "add?pin=false", file, after: ["pin/ls?arg={Hash}"], shows: /is not pinned/ },
    "raw-leaves": { call: "add?raw-leaves=true", file, shows: /"Hash":"bafk/ },
    nocopy: {
      call: "add?nocopy=true",
      file: { content: "backing", abspath: "{data}/backing" },
      after: ["filestore/ls?arg={Hash}"],
      shows: /"Status":0/,
    },
    fscache: {
      call: "add?fscache=true&raw-leaves=true",
      before: [
        ["add?nocopy=true", { content: "backing", abspath: "{data}/backing" }],
        "block/rm?arg={unshared}&force=true",
      ],
      file: "backing",
      after: ["filestore/dups"],
      shows: (response, { Hash = "" }) => !response.text.includes(Hash),
    },
    "cid-version": { call: "add?cid-version=1", file, shows: /"Hash":"bafk/ },
    hash: { call: "add?hash=sha3-512", file, after: ["cid/format?arg={Hash}&f=%25h"], shows: /"Formatted":"sha3-512"/ },
    inline: { call: "add?inline=true", file, shows: /"Hash":"bafyaa/ },
    "inline-limit": { call: "add?inline=true&inline-limit=4", file, shows: /"Hash":"(?!bafyaa)/ },
    encoding: { call: "add?encoding=text", file, shows: /^200 \d+ added Qm\w{44} file\n$/ },
  },
  cat: {
    "<ipfs-path>": { call: "cat?arg={hello}", shows: /^200 6 hello\n$/, otherwise: missingArgument("ipfs-path") },
    offset: { call: "cat?arg={hello}&offset=2", shows: /^200 4 llo\n$/ },
    length: { call: "cat?arg={hello}&length=2", shows: /^200 2 he$/ },
    progress: { call: "cat?arg={hello}&progress=true", same: true },
  },
  get: {
    "<ipfs-path>": { call: "get?arg={hello}", shows: /hello\n/, otherwise: missingArgument("ipfs-path") },
    output: { call: "get?arg={hello}&compress=true&output=x", same: true },
    progress: { call: "get?arg={hello}&compress=true&progress=true", same: true },
    archive: {
      call: "get?arg={hello}&compress=true&archive=true",
      shows: ({ bytes }) => gunzipSync(bytes).includes("ustar"),
    },
    compress: { call: "get?arg={hello}&compress=true", shows: ({ bytes }) => bytes[0] === 0x1f && bytes[1] === 0x8b },
    // Byte 8 of the format distinguishes the fastest level from the best one.
    "compression-level": {
      call: "get?arg={hello}&compress=true&compression-level=1",
      shows: ({ bytes }) => bytes[8] === 4 && String(gunzipSync(bytes)) === "hello\n",
    },
  },
  ls: {
    "<ipfs-path>": { call: "ls?arg={dir}", shows: /"Name":"a"/, otherwise: missingArgument("ipfs-path") },
    headers: { call: "ls?arg={dir}&headers=true&encoding=text", shows: /^200 \d+ Hash +Size +Name\n/ },
    "resolve-type": { call: "ls?arg={dir}&resolve-type=false&size=false", shows: /"Type":0/ },
    size: { call: "ls?arg={dir}&resolve-type=false&size=false", shows: /"Name":"a","Hash":"\w+","Size":0/ },
    stream: { call: "ls?arg={dir}&stream=true", shows: /"Name":"a".*\n.*"Name":"sub"/ },
    long: { call: "ls?arg={dir}&long=true", same: true },
    encoding: { call: "ls?arg={dir}&encoding=text", shows: /^200 \d+ Qm\w+ 6 +a\nQm\w+ - +sub\/\n$/ },
  },
  "file/ls": {
    "<ipfs-path>": { call: "file/ls?arg={dir}", shows: /"Type":"Directory"/, otherwise: missingArgument("ipfs-path") },
    encoding: { call: "file/ls?arg={dir}&encoding=text", shows: /^200 \d+ a\nsub\n$/ },
  },
  refs: {
    "<ipfs-path>": { call: "refs?arg={dir}", shows: /"Ref":"Qm/, otherwise: missingArgument("ipfs-path") },
    format: { call: "refs?arg={dir}&format=<linkname>", shows: /"Ref":"a","Err":""\}\n\{"Ref":"sub"/ },
    edges: { call: "refs?arg={dir}&edges=true", shows: /"Ref":"Qm\w+ -\\u003e Qm/ },
    unique: { call: "refs?arg={twice}&unique=true", shows: /^200 \d+ [^\n]+\n$/ },
    recursive: { call: "refs?arg={dir}&recursive=true&format=<linkname>", shows: /"Ref":"b"/ },
    "max-depth": {
      call: "refs?arg={dir}&recursive=true&max-depth=1&format=<linkname>",
      shows: ({ text }) => !text.includes('"b"'),
    },
    encoding: { call: "refs?arg={dir}&encoding=text", shows: /^200 94 Qm\w{44}\nQm\w{44}\n$/ },
  },
  "refs/local": { encoding: { call: "refs/local?encoding=text", shows: /^200 \d+ [Qb]\w+\n[Qb]/ } },
  resolve: {
    "<name>": { call: "resolve?arg=/ipfs/{dir}/a", shows: /"Path":"\/ipfs\/Qm/, otherwise: missingArgument("name") },
    recursive: {
      call: "resolve?arg=/ipns/{self}/nix&recursive=false",
      shows: /^200 \d+ \{"Path":"\/ipfs\/Qm\w+\/nix"/,
      otherwise: /no link named/,
    },
    "dht-record-count": { test: searchEnds, in: "test/unit/modules/mod_node/network/ipns/unanswered.test.ts" },
    "dht-timeout": { test: searchEnds, in: "test/unit/modules/mod_node/network/ipns/unanswered.test.ts" },
    encoding: { call: "resolve?arg=/ipfs/{dir}/a&encoding=text", shows: /^200 \d+ \/ipfs\/Qm\w+\n$/ },
  },
  "tar/add": { encoding: { call: "tar/add?encoding=text", file: "", shows: /^200 \d+ Qm\w+\n$/ } },
  "tar/cat": {
    "<path>": { call: "tar/cat?arg={tar}", shows: /ustar/, otherwise: missingArgument("path") },
  },
};

export default reading;
