/** Commands for blocks, nodes and objects. */
import { missingArgument, type Sweep } from "./line.ts";

const pinned = /"Type":"recursive"/;
const block = "block {n}";
/** The empty directory as an archive. */
const car = Buffer.from(
  "OKJlcm9vdHOB2CpYIwASIFmUhDkGXylhnvQSgMu5Mr5SxW2ZxZZrZeAREjnwmLvvZ3ZlcnNpb24BJhIgWZSEOQZfKWGe9BKAy7kyvlLFbZnFlmtl4BESOfCYu+8KAggB",
  "base64",
);
const object = '{"Data":"object {n}"}';

/** Parameters for the announcements of an import. */
const announcesImport = {
  test: "an import that waits for the announcement of its roots fails if there are no peers",
  in: "test/unit/modules/mod_http_api/commands/announcing.test.ts",
};

/** Level 0.9 has no limit. */
const anySize = (call: string, file?: string) => ({
  call: `${call}&allow-big-block=true`,
  ...(file !== undefined && { file }),
  same: true as const,
});

const nodes: Sweep = {
  "block/get": { "<key>": { call: "block/get?arg={hello}", shows: /^200 14 /, otherwise: missingArgument("key") } },
  "block/put": {
    format: { call: "block/put?format=raw", file: block, shows: /"Key":"bafk/ },
    mhtype: {
      call: "block/put?mhtype=sha3-512",
      file: block,
      after: ["cid/format?arg={Key}&f=%25h"],
      shows: /"sha3-512"/,
    },
    mhlen: {
      call: "block/put?mhlen=24",
      file: block,
      after: ["cid/format?arg={Key}&f=%25L"],
      shows: /"Formatted":"24"/,
    },
    "allow-big-block": {
      call: "block/put?allow-big-block=true",
      file: block,
      shows: /^400 .*has the level of go-ipfs 0\.9\.0/,
    },
    pin: { call: "block/put?format=raw&pin=true", file: block, after: ["pin/ls?arg={Key}"], shows: pinned },
    encoding: { call: "block/put?encoding=text", file: block, shows: /^200 47 Qm\w{44}\n$/ },
  },
  "block/rm": {
    "<hash>": {
      before: [["block/put", block]],
      call: "block/rm?arg={Key}",
      shows: /^200 \d+ \{"Hash":"Qm\w+"\}\n$/,
      otherwise: missingArgument("hash"),
    },
    force: { call: "block/rm?arg={missing}&force=true", shows: /^200 \d+ \{"Hash":"\w+"\}\n$/, otherwise: /not found/ },
    quiet: { before: [["block/put", block]], call: "block/rm?arg={Key}&quiet=true", shows: /^200 0 $/ },
    encoding: {
      before: [["block/put", block]],
      call: "block/rm?arg={Key}&encoding=text",
      shows: /^200 \d+ removed Qm\w+\n$/,
    },
  },
  "block/stat": {
    "<key>": { call: "block/stat?arg={hello}", shows: /"Size":14/, otherwise: missingArgument("key") },
    encoding: { call: "block/stat?arg={hello}&encoding=text", shows: /^200 \d+ Key: Qm\w+\nSize: 14\n$/ },
  },
  "dag/export": {
    "<root>": { call: "dag/export?arg={dir}", shows: /^200 \d+ .*roots/, otherwise: missingArgument("root") },
    progress: { call: "dag/export?arg={dir}&progress=true", same: true },
    "local-only": {
      before: [["dag/put", '{"l":{"/":"{missing}"}}']],
      call: "dag/export?arg={Cid}&local-only=true",
      shows: ({ text }) => text.startsWith("200 ") && !text.includes("trailer:"),
    },
  },
  "dag/get": {
    "<ref>": { call: "dag/get?arg={cbor}/a", shows: /^200 2 1\n$/, otherwise: missingArgument("ref") },
    "output-codec": {
      call: "dag/get?arg={cbor}&output-codec=dag-json",
      shows: /^400 .*has the level of go-ipfs 0\.9\.0/,
    },
  },
  "dag/import": {
    silent: { call: "dag/import?silent=true&encoding=text", file: car, shows: /^200 0 $/ },
    "pin-roots": { call: "dag/import?pin-roots=false", file: car, shows: /^200 0 $/ },
    stats: { call: "dag/import?stats=true", file: car, shows: /"Stats":\{"BlockCount":1,"BlockBytesCount":4\}/ },
    "local-only": { call: "dag/import?local-only=true", file: car, shows: /^200 0 $/ },
    "fast-provide-root": announcesImport,
    "fast-provide-dag": announcesImport,
    "fast-provide-wait": announcesImport,
    encoding: { call: "dag/import?encoding=text", file: car, shows: /^200 \d+ Pinned root\tQm\w+\tsuccess\n$/ },
  },
  "dag/put": {
    format: { call: "dag/put?input-enc=raw&format=raw", file: block, shows: /"bafk/ },
    "input-enc": { call: "dag/put?input-enc=raw&format=raw", file: block, shows: /"bafk/ },
    pin: { call: "dag/put?pin=true", file: '{"pinned":{n}}', after: ["pin/ls?arg={Cid}"], shows: pinned },
    hash: {
      call: "dag/put?hash=sha3-512",
      file: '{"n":{n}}',
      after: ["cid/format?arg={Cid}&f=%25h"],
      shows: /"sha3-512"/,
    },
    encoding: { call: "dag/put?encoding=text", file: '{"n":{n}}', shows: /^200 \d+ bafy\w+\n$/ },
  },
  "dag/resolve": {
    "<ref>": { call: "dag/resolve?arg={cbor}/a", shows: /"RemPath":"a"/, otherwise: missingArgument("ref") },
    encoding: { call: "dag/resolve?arg={cbor}/a&encoding=text", shows: /^200 \d+ bafy\w+\/a$/ },
  },
  "dag/stat": {
    "<root>": { call: "dag/stat?arg={dir}", shows: /"NumBlocks":1\}/, otherwise: missingArgument("root") },
    progress: { call: "dag/stat?arg={dir}&progress=false", shows: /^200 \d+ [^\n]+\n$/ },
    encoding: {
      call: "dag/stat?arg={dir}&progress=false&encoding=text",
      shows: /^200 \d+ Size: \d+, NumBlocks: \d+\n$/,
    },
  },
  "object/data": {
    "<key>": { call: "object/data?arg={object}", shows: /^200 2 ab$/, otherwise: missingArgument("key") },
  },
  "object/diff": {
    "<obj_a>": {
      call: "object/diff?arg={empty}&arg={dir}",
      shows: /"Type":0,"Path":"a"/,
      otherwise: missingArgument("obj_b"),
    },
    "<obj_b>": {
      call: "object/diff?arg={empty}&arg={dir}",
      shows: /"Type":0,"Path":"a"/,
      otherwise: missingArgument("obj_b"),
    },
    verbose: {
      call: "object/diff?arg={empty}&arg={dir}&verbose=true&encoding=text",
      shows: /^200 \d+ Added new link "a" pointing to Qm/,
    },
    encoding: { call: "object/diff?arg={empty}&arg={dir}&encoding=text", shows: /^200 \d+ \+ Qm\w+ "a"\n/ },
  },
  "object/get": {
    "<key>": { call: "object/get?arg={object}", shows: /"Data":"ab"/, otherwise: missingArgument("key") },
    "data-encoding": { call: "object/get?arg={object}&data-encoding=base64", shows: /"Data":"YWI="/ },
  },
  "object/links": {
    "<key>": { call: "object/links?arg={dir}", shows: /"Name":"a"/, otherwise: missingArgument("key") },
    headers: { call: "object/links?arg={dir}&headers=true&encoding=text", shows: /^200 \d+ Hash +Size +Name\n/ },
    encoding: { call: "object/links?arg={dir}&encoding=text", shows: /^200 \d+ Qm\w+ +14 +a\n/ },
  },
  "object/new": {
    "<template>": { call: "object/new?arg=unixfs-dir", shows: /"QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"/ },
    encoding: { call: "object/new?encoding=text", shows: /^200 47 QmdfTbBqBPQ7VNxZEYEj14VmRuZBkqFbiwReogJgS1zR1n\n$/ },
  },
  "object/patch/add-link": {
    "allow-big-block": anySize("object/patch/add-link?arg={empty}&arg=x&arg={hello}"),
    "<root>": {
      call: "object/patch/add-link?arg={empty}&arg=x&arg={hello}",
      shows: /"Name":"x"/,
      otherwise: missingArgument("ref"),
    },
    "<name>": {
      call: "object/patch/add-link?arg={empty}&arg=x&arg={hello}",
      shows: /"Name":"x"/,
      otherwise: missingArgument("ref"),
    },
    "<ref>": {
      call: "object/patch/add-link?arg={empty}&arg=x&arg={hello}",
      shows: /"Name":"x"/,
      otherwise: missingArgument("ref"),
    },
    create: {
      call: "object/patch/add-link?arg={empty}&arg=x/y&arg={hello}&create=true",
      shows: /"Name":"x"/,
      otherwise: /no link by that name/,
    },
    encoding: { call: "object/patch/add-link?arg={empty}&arg=x&arg={hello}&encoding=text", shows: /^200 47 Qm\w+\n$/ },
  },
  "object/patch/append-data": {
    "allow-big-block": anySize("object/patch/append-data?arg={object}", "cd"),
    "<root>": {
      call: "object/patch/append-data?arg={object}",
      file: "cd",
      after: ["object/data?arg={Hash}"],
      shows: /^200 4 abcd$/,
      otherwise: missingArgument("root"),
    },
    encoding: { call: "object/patch/append-data?arg={object}&encoding=text", file: "cd", shows: /^200 47 Qm\w+\n$/ },
  },
  "object/patch/rm-link": {
    "allow-big-block": anySize("object/patch/rm-link?arg={dir}&arg=a"),
    "<root>": {
      call: "object/patch/rm-link?arg={dir}&arg=a",
      shows: /"Links":\[\{"Name":"sub"/,
      otherwise: missingArgument("name"),
    },
    "<name>": {
      call: "object/patch/rm-link?arg={dir}&arg=a",
      shows: /"Links":\[\{"Name":"sub"/,
      otherwise: missingArgument("name"),
    },
    encoding: { call: "object/patch/rm-link?arg={dir}&arg=a&encoding=text", shows: /^200 47 Qm\w+\n$/ },
  },
  "object/patch/set-data": {
    "allow-big-block": anySize("object/patch/set-data?arg={object}", "cd"),
    "<root>": {
      call: "object/patch/set-data?arg={object}",
      file: "cd",
      after: ["object/data?arg={Hash}"],
      shows: /^200 2 cd$/,
      otherwise: missingArgument("root"),
    },
    encoding: { call: "object/patch/set-data?arg={object}&encoding=text", file: "cd", shows: /^200 47 Qm\w+\n$/ },
  },
  "object/put": {
    inputenc: { call: "object/put?inputenc=protobuf", file: new Uint8Array([10, 2, 97, 98]), shows: /"Hash":"Qm/ },
    datafieldenc: {
      call: "object/put?datafieldenc=base64",
      file: '{"Data":"YWI="}',
      after: ["object/data?arg={Hash}"],
      shows: /^200 2 ab$/,
    },
    pin: { call: "object/put?pin=true", file: object, after: ["pin/ls?arg={Hash}"], shows: pinned },
    quiet: { call: "object/put?quiet=true&encoding=text", file: object, shows: /^200 47 Qm\w+\n$/ },
    encoding: { call: "object/put?encoding=text", file: object, shows: /^200 \d+ added Qm\w+\n$/ },
  },
  "object/stat": {
    "<key>": { call: "object/stat?arg={object}", shows: /"DataSize":2/, otherwise: missingArgument("key") },
    human: { call: "object/stat?arg={big}&human=true&encoding=text", shows: /CumulativeSize: 600 kB\n/ },
    encoding: { call: "object/stat?arg={object}&encoding=text", shows: /^200 \d+ NumLinks: +0\n/ },
  },
};

export default nodes;
