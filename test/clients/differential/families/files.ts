/**
 * Plays sequences of MFS calls in a directory of their own, and compares the directory's CID at the
 * end.
 */
import { posix } from "node:path";
import {
  type CallResponse,
  type Case,
  type CaseCall,
  type CaseStep,
  type Compared,
  comparedByDefault,
  type Family,
  type Level,
} from "../family.ts";
import type { CaseRandom } from "../random.ts";

const EMPTY = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn";
const HELLO = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";
const LENGTH = 10;

const names = ["a", "b", "a/b", "a/b/c", "d", "ü", "a b", "a/", ".", "a/../b", "f.txt"];
const contents = ["", "x".repeat(10), "hello", "y".repeat(300)];

const add = (content: string) => [{ filename: "f", type: "application/octet-stream", content }];

type Maker = (random: CaseRandom, path: () => string, options: (...words: readonly string[]) => string) => CaseCall;

/** Returns a function that makes a call with one path. */
const at =
  (command: string, ...words: readonly string[]): Maker =>
  (_random, path, options) => ({ path: `files/${command}?arg=${path()}${options(...words)}` });

/** Options that go-ipfs 0.9 does not have begin with a plus. */
const optionsFor =
  (random: CaseRandom, level: Level) =>
  (...words: readonly string[]): string => {
    const known = words.filter((word) => level !== "0.9" || !word.startsWith("+"));
    return random
      .some(0.3, known)
      .map((word) => `&${word.replace(/^\+/, "")}`)
      .join("");
  };

const mkdir = at("mkdir", "parents=true", "cid-version=1", "hash=sha2-512", "parents=true");
const rm = at("rm", "recursive=true", "recursive=true", "force=true");
const mv: Maker = (_random, path) => ({ path: `files/mv?arg=${path()}&arg=${path()}` });
const stat = at("stat", "hash=true", "size=true", "with-local=true", "format=<hash>-<type>");
const ls = at("ls", "long=true", "U=true");
const chcid = at("chcid", "cid-version=1", "hash=sha2-512");
const flush = at("flush");

const write: Maker = (random, path, options) => {
  const target = path();
  const words = ["create=true", "create=true", "parents=true", "truncate=true", "count=2"];
  const more = [random.pick(["offset=3", "offset=-1"]), random.pick(["raw-leaves=true", "raw-leaves=false"])];
  return {
    path: `files/write?arg=${target}${options(...words, ...more, "cid-version=1")}`,
    parts: add(random.pick(contents)),
  };
};

const cp: Maker = (random, path, options) => {
  const source = random.pick([path(), `/ipfs/${EMPTY}`, `/ipfs/${HELLO}`, EMPTY]);
  return { path: `files/cp?arg=${source}&arg=${path()}${options("+parents=true", "+force=true")}` };
};

const read: Maker = (random, path, options) => ({
  path: `files/read?arg=${path()}${options(random.pick(["offset=2", "offset=100000"]), "count=3")}`,
});

const chmod: Maker = (random, path) => ({
  path: `files/chmod?arg=${random.pick(["644", "0755", "1777", "9", "-1"])}&arg=${path()}`,
});

/** Each call is chosen as often as it occurs here. */
const common = [mkdir, mkdir, write, write, write, cp, cp, mv, rm, stat, ls, read, chcid, flush];
const makers: Readonly<Record<Level, readonly Maker[]>> = { "0.9": common, "0.43": [...common, chmod] };

function* sequence(random: CaseRandom, level: Level, number: number): Case {
  const root = `/s${number}`;
  const path = () => encodeURIComponent(root + random.pick(["/", "/", "/", "//"]) + random.pick(names));
  yield { path: `files/mkdir?arg=${root}` };
  for (let left = LENGTH; left > 0; left -= 1) {
    yield random.pick(makers[level])(random, path, optionsFor(random, level));
  }
  yield { path: `files/stat?arg=${root}&hash=true` };
}

/** Leaves out times, and the numbers of blocks, which the reference counts in another way. */
const left = /"(Mtime|MtimeNsecs|Blocks)":\d+/g;

function compare(response: CallResponse): Compared {
  const { response: text, refusal } = comparedByDefault(response);
  // A removal reports each failure as a line, and has a trailer at the end.
  if (text.startsWith('200 "')) return { response: "200", refusal: `${text.slice(4)}${refusal ?? ""}` };
  return { response: text.replace(left, '"$1":0'), refusal };
}

const argumentsOf = ({ path }: CaseCall) => new URLSearchParams(path.slice(path.indexOf("?"))).getAll("arg");

/** Returns whether a directory was moved to its own path or below it, or a file to its own path. */
function isMoveToItself({ call, ours }: CaseStep): boolean {
  if (!call.path.startsWith("files/mv?")) return false;
  if (ours.refusal?.includes("to a subdirectory of itself")) return true;
  const [from = "", to = ""] = argumentsOf(call);
  const moved = to.endsWith("/") ? posix.resolve(to, posix.basename(from)) : posix.resolve(to);
  return posix.resolve(from) === moved && ours.refusal === undefined;
}

const isWritten = ({ call, ours }: CaseStep): boolean =>
  /^files\/write\?(?!.*truncate=true)/.test(call.path) && ours.refusal === undefined;
const isCopy = ({ call, ours }: CaseStep): boolean =>
  call.path.startsWith("files/cp?") && call.path.includes(HELLO) && ours.refusal === undefined;

/** Returns whether there are steps of these kinds, one after the other. */
function isInOrder(steps: readonly CaseStep[], ...kinds: readonly ((step: CaseStep) => boolean)[]): boolean {
  let at = 0;
  for (const step of steps) if (kinds[at]?.(step)) at += 1;
  return at === kinds.length;
}

/** Fixed sequences at level 0.43 in `/f`, which is removed before each of them. */
const fixedLater: Readonly<Record<string, readonly string[]>> = {
  "touch and chmod of a directory with entries": [
    "mkdir?arg=/f/d/e&parents=true",
    "touch?arg=/f/d&mtime=1600000000&mtime-nsecs=5",
    "chmod?arg=0755&arg=/f/d",
    "mkdir?arg=/f/d/g",
    "touch?arg=/f/d&mtime=1600000001",
    "stat?arg=/f/d",
    "chmod?arg=0&arg=/f/d",
    "stat?arg=/f/d",
  ],
  "bits beyond the permissions": [
    "mkdir?arg=/f/d&parents=true",
    "chmod?arg=-1&arg=/f/d",
    "chmod?arg=40000644&arg=/f/d",
    "stat?arg=/f/d",
    "stat?arg=/f/d&format=%3Cmode%3E%20%3Cmode-octal%3E",
    "chmod?arg=7777&arg=/f/d",
    "stat?arg=/f/d",
    "cp?arg=/ipfs/QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX&arg=/f/d/x",
    "chmod?arg=4000644&arg=/f/d/x",
    "stat?arg=/f/d/x",
  ],
};

function* calls(paths: readonly string[]): Case {
  yield { path: "files/rm?arg=/f&force=true" };
  for (const path of paths) yield { path: `files/${path}` };
  yield { path: "files/stat?arg=/f" };
}

function* fixed(level: Level) {
  if (level === "0.9") return;
  for (const [name, paths] of Object.entries(fixedLater)) yield [name, calls(paths)] as const;
}

export const family: Family = {
  name: "files",
  fixed,
  before: [{ path: "add?quieter=true", parts: add("hello") }],
  random: sequence,
  compare,
  explained: [
    {
      reason: "the reference loses a directory that is moved to itself or into itself; this node does not move it",
      applies: ({ steps }) => steps.some(isMoveToItself),
    },
    {
      reason: "the reference loses or misplaces bytes in a file whose root has bytes of its own before its links",
      applies: ({ steps }) => isInOrder(steps, isCopy, isWritten),
    },
    {
      reason: "go-ipfs 0.9 writes with the raw-leaves of an earlier call as long as it keeps the file in memory",
      applies: ({ level, steps }) => level === "0.9" && steps.some(({ call }) => call.path.includes("raw-leaves=")),
    },
  ],
  recorded: 60,
};
