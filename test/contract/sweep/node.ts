/** Commands for the node itself: configuration, keys, CIDs and running commands. */
import { generateKeyPairSync } from "node:crypto";
import { missingArgument, type Sweep } from "./line.ts";

const generate = "key/gen?arg=k{n}";
const keyFile = Buffer.from(
  "CAESQAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=",
  "base64",
);
/** PEM files of two key types. */
const pemFile = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
const ecdsaFile = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({
  type: "pkcs8",
  format: "pem",
});
const multihash = /"Id":"(12D3|Qm)/;
const rsa = /"Id":"k2k4r8/;
const lists = (path: string, numbered: RegExp) => ({
  numeric: { call: `${path}?numeric=true&encoding=text`, shows: numbered },
  encoding: { call: `${path}?encoding=text`, shows: /^200 \d+ +[a-z]/ },
});

const node: Sweep = {
  "cid/base32": {
    "<cid>": { call: "cid/base32?arg={hello}", shows: /"Formatted":"bafy/, otherwise: missingArgument("cid") },
    encoding: { call: "cid/base32?arg={hello}&encoding=text", shows: /^200 \d+ bafy\w+\n$/ },
  },
  "cid/bases": {
    prefix: { call: "cid/bases?prefix=true&encoding=text", shows: /\nb +base32\n/ },
    ...lists("cid/bases", /\n *98 +base32\n/),
  },
  "cid/codecs": lists("cid/codecs", /\n *112 +protobuf\n/),
  "cid/hashes": lists("cid/hashes", /\n *18 +sha2-256\n/),
  "cid/format": {
    "<cid>": { call: "cid/format?arg={hello}", shows: /"Formatted":"Qm/, otherwise: missingArgument("cid") },
    f: { call: "cid/format?arg={hello}&f=%25v", shows: /"Formatted":"cidv0"/ },
    v: { call: "cid/format?arg={hello}&v=1", shows: /"Formatted":"zdj7/ },
    codec: { call: "cid/format?arg={hello}&codec=raw&b=base32", shows: /"Formatted":"bafk/ },
    b: { call: "cid/format?arg={cbor}&b=base16", shows: /"Formatted":"f01/ },
    encoding: { call: "cid/format?arg={hello}&encoding=text", shows: /^200 47 Qm\w+\n$/ },
  },
  commands: {
    flags: { call: "commands?flags=true&encoding=text", shows: /\nipfs add --quiet \/ ipfs add -q\n/ },
    encoding: { call: "commands?encoding=text", shows: /\nipfs add\n/ },
  },
  config: {
    "<key>": { call: "config?arg=Routing.Type", shows: /"Value":"dht"/, otherwise: missingArgument("key") },
    "<value>": { call: "config?arg=Swept&arg=v{n}", shows: ({ text }, { n }) => text.includes(`"Value":"v${n}"`) },
    bool: { call: "config?arg=Swept&arg=true&bool=true", shows: /"Value":true/ },
    json: { call: "config?arg=Swept&arg=[1]&json=true", shows: /"Value":\[1\]/ },
    "expand-auto": {
      before: [
        // Nobody listens at this address.
        'config?arg=AutoConf.URL&arg="http://127.0.0.1:9"&json=true',
        'config?arg=Routing.DelegatedRouters&arg=["auto"]&json=true',
      ],
      call: "config?arg=Routing.DelegatedRouters&expand-auto=true",
      shows: /"Value":\[\]/,
    },
    encoding: { call: "config?arg=Routing.Type&encoding=text", shows: /^200 4 dht\n$/ },
  },
  "config/profile/apply": {
    "<profile>": {
      call: "config/profile/apply?arg=lowpower&dry-run=true",
      shows: /"NewCfg"/,
      otherwise: missingArgument("profile"),
    },
    "dry-run": {
      call: "config/profile/apply?arg=lowpower&dry-run=true",
      after: ["config?arg=Swarm.ConnMgr.LowWater"],
      shows: ({ text }) => text.startsWith("200") && !text.includes('"Value":20}'),
    },
    encoding: { call: "config/profile/apply?arg=badgerds&dry-run=true&encoding=text", shows: /^(?!.*NewCfg)/s },
  },
  "config/show": { encoding: { call: "config/show?encoding=text", shows: /^200 \d+ \{\n {2}"API"/ } },
  "diag/cmds": {
    verbose: { call: "diag/cmds?verbose=true&encoding=text", shows: /^200 \d+ ID +Command +Arguments/ },
    encoding: { call: "diag/cmds?encoding=text", shows: /^200 \d+ Command +Active/ },
  },
  "diag/cmds/set-time": {
    "<time>": { call: "diag/cmds/set-time?arg=1h", shows: /^200 0 $/, otherwise: missingArgument("time") },
  },
  id: {
    "<peerid>": { call: "id?arg={other}&offline=true", shows: /^500 / },
    format: { call: "id?format=<pver>&encoding=text", shows: /^200 \d+ ipfs\/0\.1\.0$/ },
    "peerid-base": { call: "id?peerid-base=base36", shows: /"ID":"k/ },
    encoding: { call: "id?encoding=text", shows: /^200 \d+ \{\n\t"ID"/ },
  },
  "key/export": {
    "<name>": {
      before: [generate],
      call: "key/export?arg=k{n}",
      shows: /^200 68 /,
      otherwise: missingArgument("name"),
    },
    output: { call: "key/export?arg=swept&output=x", same: true },
    format: {
      before: [generate],
      call: "key/export?arg=k{n}&format=pem-pkcs8-cleartext",
      shows: /^200 \d+ -----BEGIN PRIVATE KEY-----/,
    },
  },
  "key/gen": {
    "<name>": { call: "key/gen?arg=g{n}", shows: /"Name":"g\d+"/, otherwise: missingArgument("name") },
    type: { call: "key/gen?arg=g{n}&type=rsa", shows: rsa },
    size: {
      call: "key/gen?arg=g{n}&type=rsa&size=3072",
      after: ["key/export?arg=g{n}"],
      shows: ({ bytes }) => bytes.length > 1500,
    },
    "ipns-base": { call: "key/gen?arg=g{n}&ipns-base=b58mh", shows: multihash },
    encoding: { call: "key/gen?arg=g{n}&encoding=text", shows: /^200 \d+ k51\w+\n$/ },
  },
  "key/import": {
    "<name>": {
      call: "key/import?arg=i{n}",
      file: keyFile,
      shows: /"Name":"i\d+"/,
      otherwise: missingArgument("name"),
    },
    format: { call: "key/import?arg=i{n}&format=pem-pkcs8-cleartext", file: pemFile, shows: /"Name":"i\d+"/ },
    "allow-any-key-type": {
      call: "key/import?arg=i{n}&format=pem-pkcs8-cleartext&allow-any-key-type=true",
      file: ecdsaFile,
      shows: /"Name":"i\d+"/,
    },
    "ipns-base": { call: "key/import?arg=i{n}&ipns-base=b58mh", file: keyFile, shows: multihash },
    encoding: { call: "key/import?arg=i{n}&encoding=text", file: keyFile, shows: /^200 \d+ k51\w+\n$/ },
  },
  "key/list": {
    l: { call: "key/list?l=true&encoding=text", shows: /\nk51\w+ +swept/ },
    "ipns-base": { call: "key/list?ipns-base=b58mh", shows: multihash },
    encoding: { call: "key/list?encoding=text", shows: /^200 \d+ self *\n/ },
  },
  "key/rename": {
    "<name>": {
      before: [generate],
      call: "key/rename?arg=k{n}&arg=r{n}",
      shows: /"Was":"k\d+","Now":"r/,
      otherwise: missingArgument("newName"),
    },
    "<newName>": {
      before: [generate],
      call: "key/rename?arg=k{n}&arg=r{n}",
      shows: /"Was":"k\d+","Now":"r/,
      otherwise: missingArgument("newName"),
    },
    force: {
      before: [generate, "key/gen?arg=r{n}"],
      call: "key/rename?arg=k{n}&arg=r{n}&force=true",
      shows: /"Overwrite":true/,
      otherwise: /already exists, refusing to overwrite/,
    },
    "ipns-base": { before: [generate], call: "key/rename?arg=k{n}&arg=r{n}&ipns-base=b58mh", shows: multihash },
    encoding: {
      before: [generate],
      call: "key/rename?arg=k{n}&arg=r{n}&encoding=text",
      shows: /^200 \d+ Key k51\w+ renamed to r\d+\n$/,
    },
  },
  "key/rm": {
    "<name>": {
      before: [generate],
      call: "key/rm?arg=k{n}",
      shows: /"Name":"k\d+"/,
      otherwise: missingArgument("name"),
    },
    l: { before: [generate], call: "key/rm?arg=k{n}&l=true&encoding=text", shows: /^200 \d+ k51\w+ +k\d+/ },
    "ipns-base": { before: [generate], call: "key/rm?arg=k{n}&ipns-base=b58mh", shows: multihash },
    encoding: { before: [generate], call: "key/rm?arg=k{n}&encoding=text", shows: /^200 \d+ k\d+ *\n$/ },
  },
  "key/rotate": {
    oldkey: {
      call: "key/rotate?oldkey=former{n}",
      after: ["key/list"],
      shows: /"Name":"former/,
      otherwise: /keystore name for backing up old key must be provided/,
    },
    type: { call: "key/rotate?oldkey=former{n}&type=rsa", after: ["config?arg=Identity.PeerID"], shows: /"Value":"Qm/ },
    size: {
      call: "key/rotate?oldkey=former{n}&type=rsa&size=3072",
      after: ["key/rotate?oldkey=latter{n}", "key/export?arg=latter{n}"],
      shows: ({ bytes }) => bytes.length > 1500,
    },
  },
  "log/level": {
    "<subsystem>": {
      call: "log/level?arg=all&arg=error",
      shows: /Changed log level of '\*' to 'error'/,
      otherwise: missingArgument("level"),
    },
    "<level>": {
      call: "log/level?arg=all&arg=error",
      shows: /Changed log level of '\*' to 'error'/,
      otherwise: missingArgument("level"),
    },
    encoding: {
      call: "log/level?arg=all&arg=error&encoding=text",
      shows: /^200 \d+ Changed log level of '\*' to 'error'\n$/,
    },
  },
  "log/tail": {
    "log-level": {
      test: "the log is followed from a level on, and events of commands count as info",
      in: "test/unit/modules/mod_node/api/node.test.ts",
    },
  },
  "log/ls": { encoding: { call: "log/ls?encoding=text", shows: /^200 \d+ [\w/-]+\n/ } },
  update: { "<args>": { call: "update?arg=x", same: true } },
  version: {
    number: { call: "version?number=true&encoding=text", shows: /^200 6 0\.9\.0\n$/ },
    // The commit of a package is not known.
    commit: { call: "version?commit=true&encoding=text", same: true },
    repo: { call: "version?repo=true&encoding=text", shows: /^200 3 11\n$/ },
    all: {
      call: "version?all=true&encoding=text",
      shows: /^200 \d+ go-ipfs version: 0\.9\.0\S*\nRepo version: 11\nSystem version: /,
    },
    encoding: { call: "version?encoding=text", shows: /^200 \d+ ipfs version 0\.9\.0\n$/ },
  },
  "version/deps": { encoding: { call: "version/deps?encoding=text", shows: /^200 \d+ modhost@/ } },
};

export default node;
