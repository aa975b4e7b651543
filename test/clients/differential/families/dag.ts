/**
 * Stores nodes of random values and codecs, reads them by paths, and sums, exports and imports
 * them.
 */
import { createHash } from "node:crypto";
import {
  type CallResponse,
  type Case,
  type CaseCall,
  type Compared,
  comparedByDefault,
  type Family,
  type Level,
} from "../family.ts";
import { flags, upload } from "../made.ts";
import type { CaseRandom } from "../random.ts";

const LENGTH = 7;
const EMPTY = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const ABSENT = "bafyreianxccxriju53y3ru5pe36k2br7upj6a4u7xcyoxzgoxj26fl5uk4";

const names = ["a", "b", "0", "1", "c d", "é", "", "/"];
const scalars = [
  "null",
  "true",
  "0",
  "1",
  "-1",
  "1.5",
  "-0",
  "1e3",
  "1e21",
  "9007199254740993",
  '"x"',
  '"é"',
  '""',
  "[]",
  "{}",
];

function value(random: CaseRandom, known: readonly string[], depth = 0): string {
  if (depth > 2 || random.chance(0.5)) {
    if (random.chance(0.3)) return `{"/":"${random.pick(known)}"}`;
    if (random.chance(0.1))
      return random.pick(['{"/":{"bytes":"aGk"}}', '{"/":"x"}', '{"/":1}', '{"/":{"bytes":"!"}}', '{"/":{}}']);
    return random.pick(scalars);
  }
  const inner = Array.from({ length: random.int(0, 3) }, () => value(random, known, depth + 1));
  if (random.chance(0.4)) return `[${inner.join(",")}]`;
  const keys = names.filter((_, at) => at >= random.int(0, 4));
  return `{${inner.map((each, at) => `${JSON.stringify(keys[at] ?? `k${at}`)}:${each}`).join(",")}}`;
}

const broken = [
  "",
  "{",
  "nope",
  '{"a":1}{"b":2}',
  '{"a":1,"a":2}',
  "[1,]",
  "\u00a1aa\u0001",
  "\u000a\u0002\u0008\u0001",
  "\u00a1aa\u00f9\u0000\u0000",
];
const options: Readonly<Record<Level, readonly string[]>> = {
  "0.9": [
    "format=cbor",
    "format=protobuf",
    "format=raw",
    "format=dag-cbor",
    "format=x",
    "input-enc=json",
    "input-enc=raw",
    "input-enc=cbor",
    "input-enc=x",
  ],
  "0.43": [
    ...[
      "store-codec=dag-cbor",
      "store-codec=dag-json",
      "store-codec=dag-pb",
      "store-codec=raw",
      "store-codec=json",
      "store-codec=cbor",
    ],
    ...[
      "store-codec=x",
      "input-codec=dag-json",
      "input-codec=json",
      "input-codec=dag-cbor",
      "input-codec=cbor",
      "input-codec=raw",
    ],
    ...["input-codec=dag-pb", "input-codec=x"],
  ],
};
const output = ["dag-json", "dag-cbor", "json", "cbor", "raw", "dag-pb", "x"].map((codec) => `output-codec=${codec}`);

function put(random: CaseRandom, level: Level, known: readonly string[]): CaseCall {
  const content = random.chance(0.2) ? Buffer.from(random.pick(broken), "latin1") : value(random, known);
  const chosen = [
    ...random.some(0.5, [random.pick(options[level])]),
    ...random.some(0.3, [random.pick(options[level])]),
    ...random.some(0.15, [`hash=${random.pick(["sha2-512", "blake2b-256", "sha1", "identity", "x", ""])}`]),
    ...random.some(0.1, ["pin=true"]),
  ];
  return { path: `dag/put?${chosen.join("&")}`, parts: [upload(content)] };
}

/** Returns the CID from the response of `dag/put`. */
function cidIn({ response: text }: Compared): string | undefined {
  return /^200 \{"Cid":\{"\/":"(\w+)"\}\}/.exec(text)?.[1];
}

function* sequence(random: CaseRandom, level: Level): Case {
  const known = [EMPTY, ABSENT, "bafkqaaa"];
  const path = () => {
    const root = random.pick([...known.slice(3), ...known.slice(3), ...known]);
    const below = Array.from({ length: random.int(0, 2) }, () =>
      encodeURIComponent(random.pick(["a", "b", "0", "1", "Links", "Data", "x"])),
    );
    return `${random.pick(["", "", "/ipfs/", "/ipld/"])}${[root, ...below].join("/")}`;
  };
  for (let left = LENGTH; left > 0; left -= 1) {
    const name = random.pick(["put", "put", "put", "get", "get", "resolve", "stat", "export"]);
    if (name === "put") {
      const cid = cidIn(yield put(random, level, known));
      if (cid !== undefined) known.push(cid);
    } else if (name === "get") {
      yield { path: `dag/get?arg=${path()}${level === "0.9" ? "" : flags(random, [random.pick(output)])}` };
    } else yield { path: `dag/${name}?arg=${path()}${name === "stat" ? "&progress=false" : ""}` };
  }
}

const isPut = ({ path }: CaseCall) => path.startsWith("dag/put");

function compare(response: CallResponse): Compared {
  const { status, body, late } = response;
  if (status === 200 && late === undefined && !body.equals(Buffer.from(body.toString()))) {
    return { response: `200 ${body.length} bytes, ${createHash("sha256").update(body).digest("hex").slice(0, 16)}` };
  }
  return comparedByDefault(response);
}

export const family: Family = {
  name: "dag",
  random: sequence,
  compare,
  explained: [
    {
      reason: "a failure that is known before the first byte is a status",
      applies: ({ reference, ours }) =>
        reference.response.startsWith("200 ") && reference.refusal !== undefined && /^[45]/.test(ours.response),
    },
    {
      reason: "below /ipld a dag-pb node has its links by their names, at both levels",
      applies: ({ level, call }) => level === "0.43" && /arg=\/ipld\/\w+\/(?:Links|Data)/.test(call.path),
    },
    {
      reason: "a block that is only a link is followed",
      applies: ({ call, steps }) =>
        call.path.startsWith("dag/export") &&
        steps.some(({ call: { parts } }) => /^\{"\/":"/.test(String(parts?.[0]?.content))),
    },
    {
      reason: "in plain CBOR, the keys of a dag-pb node have another order",
      applies: ({ call }) => call.path.startsWith("dag/get") && call.path.includes("output-codec=cbor"),
    },
    {
      reason: "a body without a value is rejected: the reference stores nothing and responds with 200",
      applies: ({ call, reference, ours }) =>
        isPut(call) && reference.response === "200 " && ours.refusal !== undefined,
    },
    {
      reason: "a DAG of no bytes has a ratio of 0: the reference cannot write 0 / 0",
      applies: ({ reference }) => reference.refusal === "json: unsupported value: NaN",
    },
    {
      reason: "a comma before the end of a list or map is no JSON",
      applies: ({ call, ours }) => isPut(call) && /looking for beginning of/.test(ours.refusal ?? ""),
    },
    {
      reason: "floats stay floats in dag-json",
      applies: ({ steps, reference, ours }) =>
        ours.response.replace(/\.0\b/g, "") === reference.response ||
        (steps.some(({ call: { parts } }) => /\d\.\d|\de\d/.test(String(parts?.[0]?.content))) &&
          reference.response.startsWith("200") &&
          ours.response.startsWith("200")),
    },
  ],
  recorded: 40,
};
