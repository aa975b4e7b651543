/** Sets, lists, moves, verifies and removes pins of trees. Each case has trees of its own. */
import type { CallResponse, Case, Compared, Family, Level } from "../family.ts";
import { comparedByDefault } from "../family.ts";
import { flags, upload } from "../made.ts";
import type { CaseRandom } from "../random.ts";

const LENGTH = 10;
const ABSENT = "QmXe7gvqFfynvyYqMwq6Xi7U2AYBtB8WSUS812vJTtPYwD";

const part = (filename: string, type: string, content = "") => ({ ...upload(content), filename, type });

function* sequence(random: CaseRandom, level: Level, at: number): Case {
  const parts = [
    part("d", "application/x-directory"),
    part("d/a", "application/octet-stream", `a ${at}`),
    part("d/s", "application/x-directory"),
    part("d/s/b", "application/octet-stream", `b ${at}`),
  ];
  const { response: text } = yield { path: `add?pin=false${flags(random, ["cid-version=1"], 0.5)}`, parts };
  const cids = [...text.matchAll(/"Hash":"(\w+)"/g)].map(([, cid]) => cid as string);
  const root = () =>
    random.pick([
      ...cids,
      ...cids,
      ABSENT,
      "bogus",
      `/ipfs/${cids.at(-1)}/s`,
      `${cids.at(-1)}/s/b`,
      `${cids.at(-1)}/x`,
    ]);
  const named = level === "0.9" ? [] : ["name=n", "name="];
  const makers = {
    add: () => ({ path: `pin/add?arg=${root()}${flags(random, ["recursive=false", "progress=true", ...named])}` }),
    several: () => ({ path: `pin/add?arg=${root()}&arg=${root()}` }),
    rm: () => ({ path: `pin/rm?arg=${root()}${flags(random, ["recursive=false"], 0.2)}` }),
    ls: () => ({
      path: `pin/ls?arg=${root()}${flags(
        random,
        [
          ...["type=all", "type=direct", "type=recursive", "type=indirect", "type=x", "quiet=true", "stream=true"],
          ...(level === "0.9" ? [] : ["names=true", "name=n"]),
        ],
        0.25,
      )}`,
    }),
    update: () => ({ path: `pin/update?arg=${root()}&arg=${root()}${flags(random, ["unpin=false"])}` }),
  };
  const every = ["add", "add", "add", "several", "rm", "rm", "ls", "ls", "ls", "update"] as const;
  for (let left = LENGTH; left > 0; left -= 1) yield makers[random.pick(every)]();
  for (const cid of cids) yield { path: `pin/rm?arg=${cid}` };
}

/** Matches fields that the specification has and go-ipfs 0.9 does not send. */
const added = /,"PinLs(?:List|Object)":\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}/g;

/** Sorts the lines, because pins are listed in no order. */
function compare(response: CallResponse): Compared {
  const { response: text, refusal } = comparedByDefault(response);
  if (!text.startsWith("200 {")) return { response: text, refusal };
  return { response: text.slice(4).replaceAll(added, "").split("\n").sort().join("\n"), refusal };
}

export const family: Family = {
  name: "pin",
  random: sequence,
  compare,
  explained: [
    {
      reason: "a block with a pin of its own is also indirect if it is below another pin, at both levels",
      applies: ({ level, call, ours }) =>
        level === "0.43" && /type=indirect/.test(call.path) && ours.response.includes("indirect through"),
    },
    {
      reason: "a tree that is pinned already is not traversed again, so there is no progress to report",
      applies: ({ call, reference }) =>
        /^pin\/add\?.*progress=true/.test(call.path) && reference.response.includes("Progress"),
    },
  ],
  recorded: 25,
};
