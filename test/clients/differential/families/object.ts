/** Makes, changes and reads objects of dag-pb. Kubo 0.43 has only two of these commands. */
import type { CallResponse, Case, Compared, Family, Level } from "../family.ts";
import { comparedByDefault } from "../family.ts";
import { fieldOf, flags, upload } from "../made.ts";
import type { CaseRandom } from "../random.ts";

const LENGTH = 7;
const EMPTY = "QmdfTbBqBPQ7VNxZEYEj14VmRuZBkqFbiwReogJgS1zR1n";
const DIRECTORY = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const ABSENT = "QmXe7gvqFfynvyYqMwq6Xi7U2AYBtB8WSUS812vJTtPYwD";
const names = ["a", "b", "a/b", "a/b/c", "x y", "é", "", "/", "."];
const bodies = [
  '{"Data":"hello"}',
  '{"Data":"aGVsbG8=","Links":[]}',
  `{"Data":"x","Links":[{"Name":"a","Hash":"${EMPTY}","Size":4}]}`,
  '{"Links":[{"Name":"a","Hash":"bogus","Size":4}]}',
  '{"Links":[{"Name":"a"}]}',
  "{}",
  "[]",
  "{",
  "",
];

function* sequence(random: CaseRandom, level: Level): Case {
  const known = [EMPTY, DIRECTORY];
  const root = () => random.pick([...known, ...known, ABSENT, "bogus", `/ipfs/${known[0]}`, `${known.at(-1)}/a`]);
  const name = () => encodeURIComponent(random.pick(names));
  const makers = {
    new: () => ({ path: `object/new${random.pick(["", "?arg=unixfs-dir", "?arg=x", "?arg="])}` }),
    put: () => ({
      path: `object/put?x=1${flags(random, ["datafieldenc=base64", "inputenc=protobuf", "inputenc=xml", "pin=true", "inputenc=x"], 0.2)}`,
      parts: [upload(random.pick(bodies))],
    }),
    get: () => ({ path: `object/get?arg=${root()}${flags(random, ["data-encoding=base64", "data-encoding=x"])}` }),
    links: () => ({ path: `object/links?arg=${root()}${flags(random, ["headers=true"])}` }),
    data: () => ({ path: `object/data?arg=${root()}` }),
    stat: () => ({ path: `object/stat?arg=${root()}` }),
    diff: () => ({ path: `object/diff?arg=${root()}&arg=${root()}` }),
    add: () => ({
      path: `object/patch/add-link?arg=${root()}&arg=${name()}&arg=${root()}${flags(random, ["create=true"])}`,
    }),
    rm: () => ({ path: `object/patch/rm-link?arg=${root()}&arg=${name()}` }),
    append: () => ({ path: `object/patch/append-data?arg=${root()}`, parts: [upload("more")] }),
    set: () => ({ path: `object/patch/set-data?arg=${root()}`, parts: [upload("set")] }),
  };
  const every = Object.keys(makers) as (keyof typeof makers)[];
  const chosen = level === "0.9" ? ([...every, "add", "add"] as const) : (["diff", "add", "add", "add", "rm"] as const);
  for (let left = LENGTH; left > 0; left -= 1) {
    const hash = fieldOf(yield makers[random.pick(chosen)](), "Hash");
    if (hash !== undefined) known.push(hash);
  }
}

/**
 * Leaves out the links of a response: the specification has them, but go-ipfs 0.9 does not send
 * them.
 */
function compare(response: CallResponse): Compared {
  const { response: text, refusal } = comparedByDefault(response);
  return { response: text.replace(/("Hash":"\w+"),"Links":\[[^\]]*\]/, "$1"), refusal };
}

export const family: Family = {
  name: "object",
  // Stores the empty object, which other families may have removed.
  before: [{ path: "block/put?format=v0", parts: [upload("")] }],
  random: sequence,
  compare,
  explained: [
    {
      reason: "a body without an object is rejected: the reference stores nothing and responds with 200",
      applies: ({ call, reference }) => call.path.startsWith("object/put") && reference.response === "200 ",
    },
  ],
  recorded: 30,
};
