/** Calls of `add` whose bodies name files and directories in all forms that clients use. */
import type { SentPart } from "#test/unit/modules/mod_http_api/support.ts";
import {
  type CallResponse,
  type CaseCall,
  type Compared,
  type Family,
  type Level,
  messageIn,
  single,
} from "../family.ts";
import type { CaseRandom } from "../random.ts";

/** Undefined makes a part without the parameter. */
const names = [
  undefined,
  "",
  "/",
  ".",
  "./",
  "%2F",
  "//",
  "..",
  "../..",
  "a",
  "/a",
  "%2Fa",
  "./a",
  "a/",
  "a%2F",
  "a/.",
  "a/b",
  "a%2Fb",
  "a//b",
  "a%2F%2Fb",
  "/a/b",
  "//a/b",
  "a/../b",
  "../a",
  "..%2Fa",
  "a+b",
  "a%00b",
  "%zz",
  "a%5Cb",
  "ü",
  ".hidden",
];

const directory = (filename: string | undefined, name = "file"): SentPart =>
  part(filename, "application/x-directory", "", name);
const symlink = (filename: string | undefined, name = "file") => part(filename, "application/symlink", "target", name);
const file = (filename: string | undefined, content = "hello", name = "file") =>
  part(filename, "application/octet-stream", content, name);

function part(filename: string | undefined, type: string, content: string, name: string): SentPart {
  return { name, type, content, ...(filename !== undefined && { filename }) };
}

const few = [undefined, "", "/", "a", "a/b"];
type Shape = readonly [name: string, names: readonly (string | undefined)[], (name: string | undefined) => SentPart[]];

const shapes: readonly Shape[] = [
  ["a file", names, (name) => [file(name)]],
  ["a symlink", few, (name) => [symlink(name)]],
  ["a directory before a file", names, (name) => [directory(name), file("x")]],
  ["a directory between files", few, (name) => [file("a", "first"), directory(name), file("a/x"), file("z", "last")]],
];

/** Forms whose order or roots matter, which a single name cannot show. */
const others: Readonly<Record<string, SentPart[]>> = {
  "a tree below a root without a name": [directory(""), directory("d"), file("d/e"), symlink("l"), file("z")],
  "two roots without names": [directory(""), file("a"), directory(""), file("b")],
  "a root without a name after others": [file("a"), directory("d"), file("d/e"), directory(""), file("b")],
  "an empty root without a name": [directory("")],
  "files without names below a root without a name": [directory(""), file("", "one"), file("", "two")],
  "one file without a name twice below a root without a name": [directory(""), file("", "one"), file("", "one")],
  "a directory after its children": [file("d/a"), file("d/b"), directory("d")],
  "a directory that comes back": [file("d/a"), file("x"), directory("d"), file("d/b")],
  "a directory that replaces a file": [directory("d"), file("d/a"), file("d/b"), directory("d/a")],
  "a file that replaces a directory": [directory("d"), directory("d/a"), file("d/b"), file("d/a")],
  "a file that replaces an empty directory": [directory(""), directory("a"), file("a")],
  "a file below a file": [file("a"), file("a/b"), file("c")],
  "children of implied directories": [file("d/e/f/g"), file("d/e/h"), file("d/i")],
  "a root with mode and time of its own": [
    directory("", "file?mode=0700&mtime=1600000000"),
    file("a", "hello", "file?mode=0644&mtime=5"),
    symlink("l", "file?mode=0777&mtime=6"),
  ],
};

/**
 * Modes as clients of Kubo state them, which are those of Go: a directory, and set-user-ID,
 * set-group-ID and sticky bits.
 */
const stated: readonly SentPart[] = [
  directory("d", "file?mode=020000000755&mtime=1600000000&mtime-nsecs=7"),
  file("d/f", "hello", "file?mode=064000644&mtime=5"),
  symlink("d/l", "file?mode=01000000777"),
  file("g", "hello", "file?mode=01777&mtime=-5"),
  file("h", "hello", "file?mode=77777777777"),
  symlink("l", "file?mode=0700&mtime=6"),
];
const statedQueries = [
  ...["", "progress=true", "wrap-with-directory=true&progress=true", "preserve-mode=true", "preserve-mtime=true"],
  ...[
    "preserve-mode=true&preserve-mtime=true&progress=true",
    "mode=04000755",
    "mode=64000755&mtime=7&preserve-mode=true",
  ],
];

const extraQueries = ["cid-version=1", "progress=true", "silent=true"];
/** go-ipfs 0.9 does not know these options, but this server accepts them at its level, too. */
const laterQueries = ["preserve-mode=true&preserve-mtime=true", "empty-dirs=false"];

function* fixed(level: Level) {
  const bodies: [name: string, parts: SentPart[]][] = Object.entries(others);
  for (const [shape, each, partsFor] of shapes) {
    for (const name of each) bodies.push([`${shape}, ${JSON.stringify(name) ?? "no name"}`, partsFor(name)]);
  }
  for (const [name, parts] of bodies) {
    const extra = name in others ? [...extraQueries, ...(level === "0.9" ? [] : laterQueries)] : [];
    for (const query of ["", "wrap-with-directory=true", ...extra]) yield named(name, query, parts);
  }
  for (const query of level === "0.9" ? [""] : statedQueries) yield named("modes and times", query, stated);
}

function named(name: string, query: string, parts: readonly SentPart[]) {
  const call = { path: `add?pin=false&${query}`, parts };
  return [query === "" ? name : `${name}, ${query}`, single(call)] as const;
}

const randomNames = [
  ...["", "/", ".", "..", "%2F", "a", "/a", "%2Fa", "./a", "a/", "a%2F", "a/b", "a%2Fb", "a//b", "a%2F%2Fb"],
  ...["a/../b", "b", "b/c", "b%2Fc%2Fd", "a b", "%C3%BC", "ü", "a%00b", ".hidden", "-", "%25"],
];
const randomOptions = ["wrap-with-directory", "cid-version", "quieter", "trickle", "only-hash", "silent"];

function randomCall(random: CaseRandom): CaseCall {
  const parts: SentPart[] = [];
  for (let left = random.int(1, 5); left > 0; left -= 1) {
    const make = random.pick([directory, symlink, (name: string) => file(name, `hello ${parts.length % 3}`), file]);
    parts.push(make(random.pick(randomNames)));
  }
  const options = random.some(0.15, [...randomOptions, "preserve-mode"]);
  const query = options.map((option) => `&${option}=${option === "cid-version" ? 1 : true}`);
  return { path: `add?progress=false&pin=false${query.join("")}`, parts };
}

/** Returns the status, a line for each event, and the failure. */
function compare({ status, body, late }: CallResponse): Compared {
  if (status >= 400) return { response: String(status), refusal: messageIn(body.toString()) };
  const lines = body.toString().split("\n");
  return { response: [status, ...lines.filter((line) => line !== "").map(shortened)].join("\n"), refusal: late };
}

/** Writes an event as `name hash size`, followed by its other fields. */
function shortened(line: string): string {
  const { Name, Hash, Size, ...rest } = JSON.parse(line) as Record<string, string>;
  const more = Object.entries(rest).map(([key, value]) => ` ${key}=${value}`);
  return `${JSON.stringify(Name)} ${Hash ?? "-"} ${Size ?? "-"}${more.join("")}`;
}

export const family: Family = {
  name: "add",
  fixed,
  random: (random) => single(randomCall(random)),
  compare,
  explained: [
    {
      reason: "go-ipfs 0.9 does not know preserve-mode; options of a later level are served at both",
      applies: ({ level, call }) => level === "0.9" && call.path.includes("preserve-mode=true"),
    },
  ],
  recorded: 150,
};
