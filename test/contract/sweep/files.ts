/** Commands of the mutable file system. */
import { missingArgument, type ShownBy, type Sweep } from "./line.ts";

const flushed: ShownBy = {
  test: "flushed changes survive a crash, and changes that were not flushed need not",
  in: "test/unit/modules/mod_node/content/mfs/namespace.test.ts",
};
const make = (path: string) => `files/mkdir?parents=true&arg=${path}`;
const write = (path: string) => [`files/write?create=true&arg=${path}`, "hello\n"] as const;
const version1 = /"Hash":"bafy/;

const files: Sweep = {
  "files/chcid": {
    "<path>": { call: "files/chcid?arg=/none{n}", shows: /file does not exist/, otherwise: /^200 0 $/ },
    flush: flushed,
    "cid-version": {
      before: [make("/c{n}")],
      call: "files/chcid?arg=/c{n}&cid-version=1",
      after: ["files/stat?arg=/c{n}"],
      shows: version1,
    },
    hash: {
      before: [make("/c{n}")],
      call: "files/chcid?arg=/c{n}&hash=sha3-512",
      after: ["files/stat?arg=/c{n}", "cid/format?arg={Hash}&f=%25h"],
      shows: /sha3-512/,
    },
  },
  "files/cp": {
    force: {
      before: [["files/write?arg=/over{n}&create=true", "before"]],
      call: "files/cp?arg=/ipfs/{hello}&arg=/over{n}&force=true",
      after: ["files/read?arg=/over{n}"],
      shows: /^200 6 hello/,
    },
    parents: {
      call: "files/cp?arg=/ipfs/{hello}&arg=/above{n}/cp&parents=true",
      after: ["files/read?arg=/above{n}/cp"],
      shows: /^200 6 hello/,
    },
    "<source>": {
      call: "files/cp?arg=/ipfs/{hello}&arg=/cp{n}",
      after: ["files/read?arg=/cp{n}"],
      shows: /^200 6 hello/,
      otherwise: missingArgument("dest"),
    },
    "<dest>": {
      call: "files/cp?arg=/ipfs/{hello}&arg=/cp{n}",
      after: ["files/read?arg=/cp{n}"],
      shows: /^200 6 hello/,
      otherwise: missingArgument("dest"),
    },
    flush: flushed,
  },
  "files/flush": {
    "<path>": { before: [make("/e{n}")], call: "files/flush?arg=/e{n}", shows: /"Cid":"QmUNLL/ },
    flush: flushed,
    encoding: { call: "files/flush?encoding=text", shows: /^200 47 Qm\w+\n$/ },
  },
  "files/ls": {
    "<path>": { before: [make("/l{n}/only")], call: "files/ls?arg=/l{n}", shows: /"Name":"only"/ },
    flush: flushed,
    long: { call: "files/ls?arg=/made&long=true", shows: /"Name":"file","Type":0,"Size":6,"Hash":"Qm/ },
    U: {
      call: "files/ls?arg=/sharded&U=true&encoding=text",
      shows: ({ text }) =>
        text
          .slice(8)
          .split("\n")
          .filter(Boolean)
          .some((name, at, all) => at > 0 && name < (all[at - 1] as string)),
    },
    encoding: { call: "files/ls?arg=/made&encoding=text", shows: /^200 5 file\n$/ },
  },
  "files/mkdir": {
    "<path>": {
      call: "files/mkdir?arg=/m{n}",
      after: ["files/stat?arg=/m{n}"],
      shows: /"Type":"directory"/,
      otherwise: missingArgument("path"),
    },
    flush: flushed,
    parents: { call: "files/mkdir?arg=/m{n}/a/b&parents=true", shows: /^200 0 $/, otherwise: /file does not exist/ },
    "cid-version": { call: "files/mkdir?arg=/m{n}&cid-version=1", after: ["files/stat?arg=/m{n}"], shows: version1 },
    hash: {
      call: "files/mkdir?arg=/m{n}&hash=sha3-512",
      after: ["files/stat?arg=/m{n}", "cid/format?arg={Hash}&f=%25h"],
      shows: /sha3-512/,
    },
  },
  "files/mv": {
    "<source>": {
      before: [make("/from{n}")],
      call: "files/mv?arg=/from{n}&arg=/to{n}",
      after: ["files/stat?arg=/to{n}"],
      shows: /"Type":"directory"/,
      otherwise: missingArgument("dest"),
    },
    "<dest>": {
      before: [make("/from{n}")],
      call: "files/mv?arg=/from{n}&arg=/to{n}",
      after: ["files/stat?arg=/from{n}"],
      shows: /file does not exist/,
      otherwise: missingArgument("dest"),
    },
    flush: flushed,
  },
  "files/read": {
    "<path>": { call: "files/read?arg=/made/file", shows: /^200 6 hello\n$/, otherwise: missingArgument("path") },
    flush: flushed,
    offset: { call: "files/read?arg=/made/file&offset=2", shows: /^200 4 llo\n$/ },
    count: { call: "files/read?arg=/made/file&count=2", shows: /^200 2 he$/ },
  },
  "files/rm": {
    "<path>": {
      before: [write("/rm{n}")],
      call: "files/rm?arg=/rm{n}",
      after: ["files/stat?arg=/rm{n}"],
      shows: /file does not exist/,
      otherwise: missingArgument("path"),
    },
    flush: flushed,
    recursive: {
      before: [make("/rm{n}/a")],
      call: "files/rm?arg=/rm{n}&recursive=true",
      shows: /^200 0 $/,
      otherwise: /use -r to remove directories/,
    },
    force: { call: "files/rm?arg=/none{n}&force=true", shows: /^200 0 $/, otherwise: /file does not exist/ },
  },
  "files/stat": {
    "<path>": { call: "files/stat?arg=/made/file", shows: /"Size":6/, otherwise: missingArgument("path") },
    flush: flushed,
    format: { call: "files/stat?arg=/made/file&format=<type>&encoding=text", shows: /^200 5 file\n$/ },
    hash: { call: "files/stat?arg=/made/file&hash=true&encoding=text", shows: /^200 47 Qm\w+\n$/ },
    size: { call: "files/stat?arg=/made/file&size=true&encoding=text", shows: /^200 3 \d\d\n$/ },
    "with-local": { call: "files/stat?arg=/made/file&with-local=true", shows: /"WithLocality":true,"Local":true/ },
    encoding: {
      call: "files/stat?arg=/made/file&encoding=text",
      shows: /^200 \d+ Qm\w+\nSize: 6\nCumulativeSize: \d+\nChildBlocks: 1\nType: file\n$/,
    },
  },
  "files/write": {
    "<path>": {
      call: "files/write?arg=/w{n}&create=true",
      file: "ab",
      after: ["files/read?arg=/w{n}"],
      shows: /^200 2 ab$/,
      otherwise: missingArgument("path"),
    },
    flush: flushed,
    offset: {
      before: [write("/w{n}")],
      call: "files/write?arg=/w{n}&offset=1",
      file: "ab",
      after: ["files/read?arg=/w{n}"],
      shows: /^200 6 hablo\n$/,
    },
    create: {
      call: "files/write?arg=/w{n}&create=true",
      file: "ab",
      shows: /^200 0 $/,
      otherwise: /file does not exist/,
    },
    parents: {
      call: "files/write?arg=/w{n}/a/b&create=true&parents=true",
      file: "ab",
      shows: /^200 0 $/,
      otherwise: /file does not exist/,
    },
    truncate: {
      before: [write("/w{n}")],
      call: "files/write?arg=/w{n}&truncate=true",
      file: "ab",
      after: ["files/read?arg=/w{n}"],
      shows: /^200 2 ab$/,
    },
    count: {
      call: "files/write?arg=/w{n}&create=true&count=1",
      file: "ab",
      after: ["files/read?arg=/w{n}"],
      shows: /^200 1 a$/,
    },
    "raw-leaves": {
      call: "files/write?arg=/w{n}&create=true&raw-leaves=true",
      file: "ab",
      after: ["files/stat?arg=/w{n}", "object/links?arg={Hash}"],
      shows: /"Hash":"bafk/,
    },
    "cid-version": {
      call: "files/write?arg=/w{n}&create=true&cid-version=1",
      file: "ab",
      after: ["files/stat?arg=/w{n}"],
      shows: version1,
    },
    hash: {
      call: "files/write?arg=/w{n}&create=true&hash=sha3-512",
      file: "ab",
      after: ["files/stat?arg=/w{n}", "cid/format?arg={Hash}&f=%25h"],
      shows: /sha3-512/,
    },
  },
};

export default files;
