/** Requests to the gateway with roots, paths, forms, ranges, conditions and hosts. */
import { createHash } from "node:crypto";
import type { SentPart } from "#test/unit/modules/mod_http_api/support.ts";
import type { CallResponse, Case, CaseDifference, Compared, Family, IntendedDifference } from "../family.ts";
import { upload } from "../made.ts";
import type { CaseRandom } from "../random.ts";

const folder = (filename: string): SentPart => ({ filename, type: "application/x-directory", content: "" });
const file = (filename: string, content: string | Buffer): SentPart => ({ ...upload(content), filename });

const rules = [
  ...["/old /index.html 301", "/temp/:x /sub/:x 302", "/app/* /index.html 200", "/gone/* /index.html 404"],
  ...["/gone410 /404.html 410", "/abs/* https://example.com/:splat 308", "/* /404.html 404"],
];
const site = [
  folder("s"),
  file("s/index.html", "<h1>i</h1>\n"),
  folder("s/sub"),
  file("s/sub/index.html", "<h1>s</h1>\n"),
  file("s/sub/hello.txt", "hello\n"),
  folder("s/sub/deep"),
  file("s/sub/deep/x.txt", "deep\n"),
  folder("s/empty"),
  file(`s/${encodeURIComponent("ü b")}/${encodeURIComponent("ö%20.txt")}`, "x\n"),
  folder("s/list"),
  file("s/list/j.xml", "<a/>\n"),
  file("s/list/json", '{"a":1}\n'),
  file("s/list/gif", "GIF89a...."),
  file("s/list/v.svg", '<svg xmlns="http://www.w3.org/2000/svg"/>'),
  file("s/list/bytes", Buffer.from([0, 1, 2])),
  file("s/list/large.txt", "z".repeat(700_000)),
  file("s/list/empty.txt", ""),
  file("s/list/x", '<?xml version="1.0"?><a/>'),
  file("s/list/p", "%PDF-1.4\n"),
  file("s/list/m.css", "a{}"),
];
const ruled = [
  folder("r"),
  file("r/_redirects", rules.join("\n")),
  file("r/index.html", "<h1>i</h1>\n"),
  folder("r/sub"),
  file("r/sub/hello.txt", "hello\n"),
  file("r/404.html", "not found\n"),
];
const document =
  '{"a":{"b":[1,{"/":{"bytes":"aGk"}}]},"l":{"/":"QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"},"s":"x"}';

const before = [
  { path: "add?pin=false", parts: site },
  { path: "add?pin=false&cid-version=1", parts: site },
  { path: "add?pin=false&cid-version=1", parts: ruled },
  { path: "dag/put?pin=false", parts: [upload(document)] },
  { path: "dag/put?pin=false&store-codec=dag-json", parts: [upload(document)] },
  { path: "add?pin=false&cid-version=1", parts: [upload('{"raw":true}\n')] },
  { path: "add?pin=false&cid-version=1", parts: [upload("<html><body>x\n")] },
];
/** Roots that the calls above make, and roots that nobody has. */
const roots = {
  site0: "QmcX2YUEcayuMkVEJpQTQ4bPhnJRMTGKCVsvG7kUPiNwZ3",
  site1: "bafybeidsqzyakskd2kczpkgy56c2eaguk7hgijwbp5enujgxyf4snikcyq",
  ruled: "bafybeibif7xy3vsq6bpxnh33bwsjw325q2jchk7guyhzxqehlqsao3o7im",
  cbor: "bafyreig6m4juujgfwre2g55ltwwrhad3p4ee4roae576duq3d2veq2eqzu",
  json: "baguqeeraww7cadbla7kf3rmtyslsbuoq5tif4mxoyrygjkjisxwxy6vt6ada",
  rawJson: "bafkreiaytor3krtazb3nyvhwe4fwl3vvxzh73dflvngfeje267donrbl7y",
  page: "bafkreih4t4guqz2ligqbuxoserymxwvjn756egxkseo2kbtduh6alfmrz4",
  empty: "bafkqaaa",
  absent: "bafkreiaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
  broken: "QmBad",
};

const paths = [
  ...[
    "",
    "/",
    "/index.html",
    "/sub",
    "/sub/",
    "/sub/hello.txt",
    "/sub/hello.txt/",
    "/sub/deep",
    "/sub/deep/",
    "/sub/deep/x.txt",
  ],
  ...[
    "/empty",
    "/empty/",
    "/%C3%BC%20b/",
    "/%C3%BC%20b/%C3%B6%2520.txt",
    "/%C3%BC",
    "/list",
    "/list/",
    "/list/j.xml",
    "/list/json",
  ],
  ...[
    "/list/gif",
    "/list/v.svg",
    "/list/bytes",
    "/list/large.txt",
    "/list/empty.txt",
    "/list/x",
    "/list/p",
    "/list/m.css",
  ],
  ...[
    "/nope",
    "/nope/",
    "/sub/nope/x",
    "/sub/hello.txt/x",
    "/%",
    "/%zz",

    "/sub?format",
    "/?a=b",
  ],
];
const ruledPaths = [
  "/old",
  "/temp/hello.txt",
  "/app/x",
  "/gone/x",
  "/gone410",
  "/abs/x",
  "/nope",
  "/sub/hello.txt",
  "/old?a=b",
];
const documentPaths = ["", "/", "/a", "/a/b", "/a/b/1", "/l", "/l/", "/s", "/x", "/a/b/9"];
const queries = [
  ...["raw", "car", "tar", "dag-json", "dag-cbor", "json", "cbor", "ipns-record", "bogus", ""].map(
    (each) => `format=${each}`,
  ),
  ...[
    "download=true",
    "filename=x.txt",
    "filename=%C3%BC.html&download=true",
    "dag-scope=block",
    "dag-scope=entity",
    "dag-scope=all",
  ],
  ...[
    "dag-scope=bogus",
    "entity-bytes=0:10",
    "entity-bytes=5:*",
    "entity-bytes=-5:*",
    "entity-bytes=bogus",
    "car-version=1",
  ],
  ...["car-version=2", "car-order=dfs", "car-dups=y", "car-dups=n"],
];
const accepts = [
  ...["text/html", "*/*", "application/vnd.ipld.raw", "application/vnd.ipld.car", "application/vnd.ipld.car; dups=y"],
  ...["application/vnd.ipld.car;version=2", "application/x-tar", "application/json", "application/cbor"],
  ...["application/vnd.ipld.dag-json", "application/vnd.ipld.dag-cbor", "application/vnd.ipfs.ipns-record"],
  ...["text/html,application/xhtml+xml,*/*;q=0.8", "image/png", "bogus"],
];
const ranges = ["bytes=0-9", "bytes=5-", "bytes=-5", "bytes=0-0,2-3", "bytes=999999999-", "bytes=0-9999999"];

function* request(random: CaseRandom): Case {
  const name = random.pick(Object.keys(roots) as (keyof typeof roots)[]);
  const root = roots[name];
  let below = random.pick(paths);
  if (name === "ruled" && random.chance(0.7)) below = random.pick(ruledPaths);
  if ((name === "cbor" || name === "json") && random.chance(0.7)) below = random.pick(documentPaths);
  const query = random.chance(0.5) ? random.some(0.06, queries).join("&") : "";
  const tags = [`"${root}"`, `W/"${root}"`, "*", '"x"', `"${root}.raw"`];
  const host = random.chance(0.25) ? `${root}.ipfs.localhost:8080` : random.pick([undefined, undefined, "example.com"]);
  const isWebsite = host?.includes("localhost") === true;
  const headers = Object.entries({
    accept: random.chance(0.4) ? random.pick(accepts) : undefined,
    range: random.chance(0.2) ? random.pick(ranges) : undefined,
    "if-none-match": random.chance(0.15) ? random.pick(tags) : undefined,
    "cache-control": random.chance(0.05) ? random.pick(["only-if-cached", "no-cache"]) : undefined,
    "x-forwarded-proto": random.chance(0.05) ? "https" : undefined,
    "service-worker": random.chance(0.05) ? "script" : undefined,
    host,
  }).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const path = isWebsite ? below || "/" : `/${random.chance(0.95) ? "ipfs" : "ipns"}/${root}${below}`;
  yield {
    path: query === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${query}`,
    gateway: { method: random.pick(["GET", "GET", "GET", "HEAD", "POST"]), headers: Object.fromEntries(headers) },
  };
}

/** Headers of content that are compared. */
const compared = [
  ...["accept-ranges", "cache-control", "content-disposition", "content-length", "content-location", "content-range"],
  ...["content-type", "etag", "location", "x-content-type-options", "x-ipfs-path", "x-ipfs-roots"],
];
const ofPages = /^(content-length|etag)$/;
/** Headers of responses without content that are compared. */
const ofOthers = /^(location|x-ipfs-path|content-range)$/;

function compare({ status, headers, body }: CallResponse): Compared {
  const isPage = String(headers["content-type"]).startsWith("text/html") && body.includes("<!DOCTYPE html>");
  const isContent = status < 300;
  const isArchive = /ipld\.car|x-tar/.test(String(headers["content-type"]));
  const lines = compared.flatMap((name) => {
    const value = headers[name];
    if (value === undefined || !(isContent || ofOthers.test(name)) || (isPage && ofPages.test(name))) return [];
    // A CAR may have a tag of any form. Streamed responses have no length, and a tar has fields of
    // its own.
    if (name === "etag" && String(value).includes(".car.")) return [];
    if (name === "content-length" && isArchive) return [];
    const text = [value].flat().join(",").replaceAll(", ", ",");
    return `${name}: ${name.endsWith("location") ? unescaped(text) : text}`;
  });
  const isHead = body.length === 0;
  const isTar = String(headers["content-type"]) === "application/x-tar";
  const digest =
    isContent && !isPage && !isHead && !isTar ? createHash("sha256").update(body).digest("hex").slice(0, 16) : "";
  return { response: [status, ...lines, digest].join("\n") };
}

/** The two servers escape different characters of the same address. */
const unescaped = (address: string): string => {
  try {
    return decodeURIComponent(Buffer.from(address, "latin1").toString());
  } catch {
    return address;
  }
};

const statusOf = ({ response: text }: Compared) => Number.parseInt(text, 10);
const lastOf = ({ call }: CaseDifference) => call;
const headersOf = (difference: CaseDifference) => lastOf(difference).gateway?.headers ?? {};

const explained: readonly IntendedDifference[] = [
  {
    reason: "the parts of several ranges are all sent: the reference sends the first",
    applies: (difference) => statusOf(difference.ours) === 206 && headersOf(difference).range?.includes(",") === true,
  },
  {
    reason: "download=true alone is an attachment under the name in the path, as the specification has it",
    applies: ({ ours, reference }) =>
      linesBeyond(ours, reference).every((line) => line.startsWith("content-disposition")),
  },
  {
    reason: "only-if-cached is about the content that is requested: the reference looks for the block of the root",
    applies: (difference) => headersOf(difference)["cache-control"] === "only-if-cached",
  },
  {
    reason: "HEAD has the headers of GET",
    applies: ({ call, reference }) => call.gateway?.method === "HEAD" && reference.response.trim() === "200",
  },
  {
    reason: "no root may have a service worker, with a slash at its end or without",
    applies: (difference) => headersOf(difference)["service-worker"] === "script" && statusOf(difference.ours) === 400,
  },
  {
    reason: "an archive of a root that is missing is 404",
    applies: ({ ours, reference }) =>
      statusOf(ours) === 404 && /^200\n(?:.*\n)*content-type: application.vnd.ipld.car/.test(reference.response),
  },
  {
    reason: "a client that has the content already needs no block of it",
    applies: ({ ours }) => statusOf(ours) === 304,
  },
  {
    reason: "a directory is JSON for clients that request it",
    applies: ({ ours }) => ours.response.includes(".listing.json"),
  },
  {
    reason: "a value inside a document has no response of its own",
    applies: ({ ours }) => statusOf(ours) === 501,
  },
  {
    reason: "a form that the content cannot have gets 406",
    applies: ({ ours }) => statusOf(ours) === 406,
  },
  {
    reason: "the type of a file is that of its beginning, whichever range of it is sent",
    applies: ({ ours, reference }) =>
      statusOf(ours) === 206 && linesBeyond(ours, reference).every((line) => line.startsWith("content-type")),
  },
  {
    reason: "a block in which a path ends after it has passed through it is sent once, with duplicates as well",
    applies: ({ ours }) => /ipld.car.*dups=y/.test(ours.response) && /\nx-ipfs-roots: (\w+),.*\1/.test(ours.response),
  },
  {
    reason: "parameters that Accept adds to the form in the query are in Content-Location",
    applies: ({ ours, reference }) =>
      linesBeyond(ours, reference).every((line) => line.startsWith("content-location")) &&
      /format=/.test(ours.response),
  },
  {
    reason: "a range of bytes alone is of an entity, as the specification has it",
    applies: (difference) => /entity-bytes/.test(lastOf(difference).path) && !/dag-scope/.test(lastOf(difference).path),
  },
  {
    reason: "a file without bytes has a type, and no range",
    applies: ({ ours }) => ours.response.includes("content-length: 0"),
  },
  {
    reason: "the reference has closed the connection",
    applies: ({ reference }) => statusOf(reference) === 0,
  },
  {
    reason: "the method is rejected before the address is parsed",
    applies: ({ ours }) => statusOf(ours) === 405,
  },
  {
    reason: "a path is served as it is, without a redirect to its clean form",
    applies: ({ reference }) => statusOf(reference) === 307,
  },
];

const linesBeyond = (one: Compared, other: Compared): string[] => {
  const known = new Set(other.response.split("\n"));
  return one.response.split("\n").filter((line) => !known.has(line));
};

export const family: Family = {
  name: "gateway",
  levels: ["0.43"],
  before,
  random: request,
  compare,
  explained,
  recorded: 0,
};
