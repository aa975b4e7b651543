/** Requests for harmful content, and harmful requests, with the allowed responses. */
import type { Roots } from "./content.ts";

export interface Attack {
  readonly name: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Allowed statuses. */
  readonly status: readonly number[];
  /** How the response ends. `open`: the client disconnects after some megabytes. */
  readonly end: "whole" | "broken" | "open" | "any";
  /** Maximum number of bytes in the body. */
  readonly most?: number;
}

type Expected = Pick<Attack, "status" | "end" | "most">;

const REFUSED: Expected = { status: [400, 404, 414, 431], end: "whole", most: 80_000 };
const KIB = 1024;
/** A little less than the maximum length of a request. */
const LONG = 15_000;

const expect = (status: number, end: Attack["end"] = "whole", most?: number): Expected => ({
  status: [status],
  end,
  ...(most === undefined ? {} : { most }),
});

export function attacks(roots: Roots): Attack[] {
  return [
    ...graphs(roots),
    ...paths(roots),
    ...liars(roots),
    ...misleading(roots),
    ...documents(roots),
    ...heads(roots),
    ...hosts(roots),
    ...websites(roots),
    ...names(roots),
  ];
}

type Line = readonly [
  name: string,
  path: string,
  expected: Expected,
  headers?: Readonly<Record<string, string>> | undefined,
];

const table = (lines: readonly Line[]): Attack[] =>
  lines.map(([name, path, expected, headers]) => ({ name, path, ...expected, ...(headers && { headers }) }));

function graphs(roots: Roots): Attack[] {
  const { file, zeros, tree, shard, road, shaft, cbor, hamt } = roots;
  return table([
    ["file of 2^40 bytes", `/ipfs/${file}?filename=a.bin`, expect(200, "open")],
    ["its end", `/ipfs/${file}?filename=a.bin`, expect(206, "whole", 3), { range: "bytes=-3" }],
    ["it as a tar", `/ipfs/${file}?format=tar`, { status: [200, 500], end: "any" }],
    ["it as a CAR", `/ipfs/${file}?format=car`, expect(200, "whole", 20_000)],
    ["it as a CAR with duplicates", `/ipfs/${file}?format=car&car-dups=y`, expect(200, "open")],
    ["leaves without bytes", `/ipfs/${zeros}?filename=a.bin`, { status: [200, 404], end: "open" }],
    ["leaves without bytes, type unknown", `/ipfs/${zeros}`, { status: [200, 404], end: "open" }],
    [
      "leaves without bytes, a range",
      `/ipfs/${zeros}`,
      { status: [206, 404], end: "open" },
      { range: "bytes=5000000000-" },
    ],
    ["tree of 2^33 files", `/ipfs/${tree}?format=tar`, expect(200, "open")],
    ["tree of 2^33 files as a CAR", `/ipfs/${tree}?format=car`, expect(200, "whole", 20_000)],
    ["tree of 2^33 files, with duplicates", `/ipfs/${tree}?format=car&car-dups=y`, expect(200, "open")],
    ["its page", `/ipfs/${tree}/`, expect(200, "whole", 20_000)],
    ["shards of 64^33", `/ipfs/${shard}/`, expect(200, "whole", 400_000)],
    ["shards of 64^33 as a tar", `/ipfs/${shard}?format=tar`, expect(200, "whole", 20_000)],
    ["shards of 64^33, a name", `/ipfs/${shard}/file-1`, expect(404)],
    ["a chain of directories as a tar", `/ipfs/${road}?format=tar`, { status: [200], end: "any" }],
    ["a chain of directories as a CAR", `/ipfs/${road}?format=car`, expect(200)],
    ["a chain of directories, its entity", `/ipfs/${road}?format=car&dag-scope=entity`, expect(200, "whole", 400)],
    ["a chain of parts", `/ipfs/${shaft}?filename=a.txt`, { ...expect(200, "whole", 100), status: [200, 404] }],
    [
      "a chain of parts, a range",
      `/ipfs/${shaft}`,
      { ...expect(206, "whole", 100), status: [206, 404] },
      { range: "bytes=90-" },
    ],
    ["a chain of parts as a CAR", `/ipfs/${shaft}?format=car&entity-bytes=0:*`, expect(200)],
    ["a chain of documents", `/ipfs/${cbor}?format=car`, expect(200)],
    ["a directory of very many", `/ipfs/${hamt}/`, expect(200, "open")],
    ["a directory of very many as JSON", `/ipfs/${hamt}/?format=json`, expect(200, "open")],
    ["a directory of very many as a tar", `/ipfs/${hamt}?format=tar`, expect(200, "open")],
    ["a directory of very many, its entity", `/ipfs/${hamt}?format=car&dag-scope=entity`, expect(200, "open")],
    ["one of very many", `/ipfs/${hamt}/file-77`, expect(200, "whole", 100)],
  ]);
}

function paths({ road, cbor, tree, leaf: _, heavy, ...roots }: Roots): Attack[] {
  const deep = (name: string, length: number) => `/${name}`.repeat(length / (name.length + 1));
  return table([
    [
      "a path of thousands of directories",
      `/ipfs/${road}${deep("a", 4000)}`,
      { status: [200, 301, 404], end: "whole" },
    ],
    [
      "a path of thousands of documents",
      `/ipfs/${cbor}${deep("a", 4000)}?format=raw`,
      { status: [200, 404], end: "whole" },
    ],
    [
      "a path of thousands as a CAR",
      `/ipfs/${road}${deep("a", 4000)}?format=car`,
      { status: [200, 404], end: "whole" },
    ],
    ["a path beyond its end", `/ipfs/${tree}${deep("a", LONG)}`, REFUSED],
    ["a path of dots", `/ipfs/${tree}${deep("..", LONG)}`, { status: [400, 404], end: "whole" }],
    ["a path of slashes", `/ipfs/${tree}${"/".repeat(LONG)}`, { status: [200, 301, 400, 404], end: "whole" }],
    ["a path of escapes", `/ipfs/${tree}/${"%00".repeat(LONG / 3)}`, REFUSED],
    ["a path of bad escapes", `/ipfs/${tree}/${"%ff".repeat(LONG / 3)}`, REFUSED],
    ["a path longer than heads may be", `/ipfs/${tree}/${"a".repeat(200_000)}`, { status: [0, 414, 431], end: "any" }],
    ["a CID of base58 without end", `/ipfs/z${"2".repeat(LONG)}`, REFUSED],
    ["a CID of base36 without end", `/ipfs/k${"2".repeat(LONG)}`, REFUSED],
    ["a CID of base32 without end", `/ipfs/b${"a".repeat(LONG)}`, REFUSED],
    ["a CID of base10 without end", `/ipfs/9${"2".repeat(LONG)}`, REFUSED],
    ["a name of base58 without end", `/ipns/z${"2".repeat(LONG)}`, { ...REFUSED, status: [400, 404, 500] }],
    ["a name of base36 without end", `/ipns/k${"2".repeat(LONG)}`, { ...REFUSED, status: [400, 404, 500] }],
    [
      "a name of labels without end",
      `/ipns/${deep("a.b", LONG).slice(1).replaceAll("/", ".")}`,
      { ...REFUSED, status: [400, 404, 500] },
    ],
    ["an identity of 128 bytes", `/ipfs/${roots["identity 128"]}`, expect(200, "whole", 128)],
    ["an identity of 129 bytes", `/ipfs/${roots["identity 129"]}`, REFUSED],
    ["an identity of 100 KB", `/ipfs/${roots["identity 100K"]}`, { status: [0, 414, 431], end: "any" }],
    [
      "a query of thousands of parameters",
      `/ipfs/${tree}/?${"a=b&".repeat(LONG / 4)}`,
      { status: [200], end: "whole" },
    ],
    ["a path through blocks of 1 MiB", `/ipfs/${heavy}${deep("a", 24)}`, { status: [200, 301], end: "any" }],
    [
      "a path through blocks of 1 MiB, as a CAR",
      `/ipfs/${heavy}${deep("a", 24)}?format=car&dag-scope=block`,
      expect(200, "open"),
    ],
  ]);
}

function liars(roots: Roots): Attack[] {
  const broken: Expected = { status: [200, 404, 500, 422], end: "any", most: 400 };
  const ask = (name: string, expected: Expected, query = "?filename=a.bin", headers?: Record<string, string>): Line => [
    `${name} ${query}${headers === undefined ? "" : " a range"}`,
    `/ipfs/${roots[name]}${query}`,
    expected,
    headers,
  ];
  const all = ["long", "short", "empty", "most", "sum", "unsaid", "fewer", "not a file", "gone"];
  return table([
    ...all.flatMap((name) => [
      ask(name, broken),
      ask(name, { ...broken, status: [200, 206, 404, 416, 500] }, "?filename=a.bin", { range: "bytes=90-299" }),
      ask(name, { ...broken, status: [200, 206, 404, 416, 500] }, "", { range: "bytes=999999999-" }),
      ask(name, { status: [200, 206, 404, 416, 500], end: "any", most: 2000 }, "", {
        range: "bytes=0-1,50-60,200-210",
      }),
      ask(name, { ...broken, most: 4000 }, "?format=tar"),
      ask(name, { ...broken, most: 4000 }, "?format=car"),
      ask(name, { ...broken, most: 4000 }, "?format=car&entity-bytes=0:*"),
      ask(name, { ...broken, most: 4000 }, "?format=car&entity-bytes=-999999999999999:999999999999999"),
      ask(name, { ...broken, most: 4000 }, "?format=car&entity-bytes=999999999999999:*"),
      ask(name, expect(400), "?format=car&entity-bytes=-1:-999999999999999"),
    ]),
    ["sizes that lie in a page", `/ipfs/${roots.sizes}/`, expect(200)],
    ["slots of no power of two", `/ipfs/${roots.slots}/`, { status: [200, 400, 404, 500], end: "any" }],
    ["a shard of 2^40 slots", `/ipfs/${roots.wide}/`, { status: [200, 400, 404, 500], end: "any" }],
    ["a shard of 2^40 slots, a name", `/ipfs/${roots.wide}/a`, { status: [400, 404, 500], end: "whole" }],
    ["digits for ever", `/ipfs/${roots.long}?format=car&entity-bytes=${"9".repeat(8000)}:*`, expect(400)],
  ]);
}

function misleading(roots: Roots): Attack[] {
  const tars = Object.keys(roots).filter((name) => name.startsWith("tar "));
  return table([
    ...tars.map(
      (name): Line => [name, `/ipfs/${roots[name]}?format=tar`, { status: [200, 400, 404, 500], end: "any" }],
    ),
    ...tars.map((name): Line => [`${name}, its page`, `/ipfs/${roots[name]}/`, expect(200)]),
    ["marks in a page", `/ipfs/${roots.marks}/`, expect(200)],
    ["marks in a header", `/ipfs/${roots.marks}/${encodeURIComponent("a\r\nSet-Cookie: a=b")}`, expect(200)],
    [
      "marks in a file name",
      `/ipfs/${roots.marks}/?filename=${encodeURIComponent("a\r\nSet-Cookie: a=b")}`,
      expect(200),
    ],
    ["a symlink to itself", `/ipfs/${roots.symlinks}/a`, expect(200, "whole", 10)],
    ["a path through it", `/ipfs/${roots.symlinks}${"/a".repeat(1000)}`, expect(404)],
    ["symlinks as a tar", `/ipfs/${roots.symlinks}?format=tar`, { status: [200], end: "any" }],
    ["names of 60,000 letters", `/ipfs/${roots.names}/`, expect(200, "open")],
    ["names of 60,000 letters as a tar", `/ipfs/${roots.names}?format=tar`, { status: [200], end: "any" }],
  ]);
}

function documents(roots: Roots): Attack[] {
  const page = { accept: "text/html" };
  return table(
    ["brackets", "objects", "arrays", "abyss", "numbers"].flatMap((name): Line[] => [
      [
        `${name}, its page`,
        `/ipfs/${roots[name]}/`,
        { status: [200, 400, 404, 500], end: "whole", most: 400_000 },
        page,
      ],
      [
        `${name} as dag-json`,
        `/ipfs/${roots[name]}?format=dag-json`,
        { status: [200, 400, 404, 406, 500], end: "any" },
      ],
      [
        `${name} as dag-cbor`,
        `/ipfs/${roots[name]}?format=dag-cbor`,
        { status: [200, 400, 404, 406, 500], end: "any" },
      ],
      [`${name}, a path`, `/ipfs/${roots[name]}${"/0".repeat(5000)}`, { status: [400, 404, 500, 501], end: "whole" }],
      [`${name} as a CAR`, `/ipfs/${roots[name]}?format=car`, { status: [200], end: "any" }],
    ]),
  );
}

function heads({ film, file, tree }: Roots): Attack[] {
  const whole = `/ipfs/${film}?filename=a.bin`;
  const some: Expected = { status: [200, 206, 400, 404, 416, 431], end: "any" };
  const range = (name: string, value: string): Line => [name, whole, { ...some, end: "open" }, { range: value }];
  const accept = (name: string, value: string): Line => [
    name,
    `/ipfs/${tree}/`,
    { ...some, end: "whole" },
    { accept: value },
  ];
  return table([
    range("a thousand ranges", `bytes=${"0-0,".repeat(1000)}1-1`),
    range("ranges that overlap", `bytes=${"0-,".repeat(90)}0-`),
    range(
      "ninety ranges",
      `bytes=${Array.from({ length: 90 }, (_, at) => `${at * 20_000_000}-${at * 20_000_000}`).join(",")}`,
    ),
    range("a range of digits", `bytes=${"9".repeat(LONG)}-`),
    range("a range of blanks", `bytes=${" ".repeat(LONG)}0-1`),
    range("a range before the file", "bytes=-99999999999999999999"),
    accept("an Accept of types", "application/vnd.ipld.nothing,".repeat(LONG / 29)),
    accept("an Accept of parameters", `application/vnd.ipld.car${"; a=b".repeat(LONG / 6)}`),
    accept("an Accept of quotes", `application/vnd.ipld.car; a="${"\\\\".repeat(LONG / 4)}`),
    accept("an Accept of commas", `application/json${",".repeat(LONG)}`),
    accept("an Accept of blanks", `application/vnd.ipld.car;${" ".repeat(LONG)}x`),
    ["tags without end", `/ipfs/${tree}/`, { ...some, end: "whole" }, { "if-none-match": 'W/"a",'.repeat(LONG / 6) }],
    [
      "open tags",
      `/ipfs/${tree}/`,
      { ...some, status: [200, 412], end: "whole" },
      { "if-match": 'W/"'.repeat(LONG / 3) },
    ],
    [
      "a file name without end",
      `/ipfs/${file}?format=raw&filename=${"%E2%82%AC".repeat(LONG / 9)}`,
      { status: [200], end: "whole" },
    ],
    ["a format that is none", `/ipfs/${tree}/?format=__proto__`, expect(200)],
    ["a head of 100 KB", `/ipfs/${tree}/`, { status: [0, 200, 431], end: "any" }, { "x-much": "a".repeat(100 * KIB) }],
  ]);
}

function hosts({ tree = "", ...roots }: Roots): Attack[] {
  const home = `/ipfs/${tree}/`;
  const any: Expected = { status: [200, 301, 302, 400, 404, 421], end: "any" };
  const host = (name: string, value: string, path = home): Line => [name, path, any, { host: value }];
  const forwarded = (name: string, value: string): Line => [name, home, expect(200), { "x-forwarded-host": value }];
  return table([
    host("a host of labels", `${"a.".repeat(7000)}ipfs.localhost`),
    host("a host of namespaces", `${"ipfs.".repeat(2900)}localhost`, "/"),
    host("a host of one label", `${"b".repeat(LONG)}.ipfs.localhost`, "/"),
    host("a host of base58", `z${"2".repeat(LONG)}.ipfs.localhost`, "/"),
    host("a name of base36", `k${"2".repeat(LONG)}.ipns.localhost`, "/"),
    host("hyphens", `${"-".repeat(LONG)}.ipns.localhost`, "/"),
    host("a host of another gateway", "example.com"),
    host("an address of another network", "[fe80::1]:80"),
    [
      "a host that is a path",
      home,
      { ...any, status: [0, 200, 400, 404] },
      { host: `${tree}.ipfs.localhost/../../etc` },
    ],
    host("an identity as a host", `${roots["identity 128"]}.ipfs.localhost`, "/"),
    forwarded("a host that no proxy vouches for", `${tree}.ipfs.localhost`),
    forwarded("hosts that no proxy vouches for", `${"a.example, ".repeat(1200)}b`),
    ["a scheme that no proxy vouches for", home, expect(200), { "x-forwarded-proto": "javascript" }],
  ]);
}

function websites(roots: Roots): Attack[] {
  const sites = Object.keys(roots).filter((name) => name.startsWith("site "));
  const regular: Expected = { status: [200, 301, 302, 404, 500], end: "whole", most: 100_000 };
  return sites.flatMap((name) => {
    const host = `${roots[name]}.ipfs.localhost`;
    const at = (what: string, path: string): Line => [`${name}: ${what}`, path, regular, { host }];
    return table([
      at("a short path", "/b"),
      at("a long segment", `/${"a".repeat(LONG - 200)}`),
      at("a thousand segments", "/a".repeat(3000)),
      at("as many segments as placeholders", "/a".repeat(7000)),
      at("segments of escapes", "/%0d%0aa:b".repeat(1000)),
    ]);
  });
}

function names({ one, alone }: Roots): Attack[] {
  return table([
    ["names that lead to each other", `/ipns/${one}/`, { status: [400, 404, 500, 508], end: "whole" }],
    ["a name that leads to itself", `/ipns/${alone}/a`, { status: [400, 404, 500, 508], end: "whole" }],
    [
      "a name that leads to itself, as a host",
      "/",
      { status: [400, 404, 500, 508], end: "whole" },
      { host: `${alone}.ipns.localhost` },
    ],
  ]);
}
