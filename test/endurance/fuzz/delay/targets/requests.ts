/**
 * Requests to the host and to the RPC: heads, queries, forms, multipart bodies, archives,
 * configurations and responses.
 */
import { Readable } from "node:stream";
import { precondition, rangeApplies } from "#core/http/files/conditions.ts";
import { parseRanges } from "#core/http/files/ranges.ts";
import { headerTable, scanHead } from "#core/http/message/head.ts";
import { parseParameters } from "#core/http/message/multipart/disposition.ts";
import { readParts } from "#core/http/message/multipart/parts.ts";
import { preferredType } from "#core/http/message/negotiate.ts";
import { decodePath, encodePath, parseTarget } from "#core/http/message/paths.ts";
import { TrustedProxies } from "#core/http/policy/proxies.ts";
import { hostName } from "#core/http/routing/hosts.ts";
import { formdecode } from "#core/net/http.ts";
import { escape_html, printable } from "#core/util/text.ts";
import { readAuthorization } from "#core/util/tokens.ts";
import { contains_token } from "#core/util/url.ts";
import { table } from "#modules/mod_http_api/commands/index.ts";
import { parseMediaType } from "#modules/mod_http_api/rpc/media_type.ts";
import { convert } from "#modules/mod_http_api/rpc/option_values.ts";
import { find, parse } from "#modules/mod_http_api/rpc/parse_call.ts";
import { pathOf, treeOf } from "#modules/mod_http_api/rpc/uploads.ts";
import { toXml } from "#modules/mod_http_api/rpc/xml.ts";
import { readCar } from "#node/content/car/read.ts";
import { readTar } from "#node/formats/tar/read.ts";
import { getAt, parseJson, printJson, setAt } from "#node/storage/repo/json.ts";
import { parseTree, printTree } from "#node/storage/repo/json_tree.ts";
import { goJson } from "#node/util/go/text.ts";
import { sentHeaders } from "#test/support/sent_headers.ts";
import { BLOCK, HEAD, type InputTarget, KIB, type Make, MIB, numbered, repeated, target, utf8 } from "../target.ts";
import { json } from "./nodes.ts";

const values: Readonly<Record<string, Make<string>>> = {
  blanks: (size) => `a${repeated(" ", size)}b`,
  "blanks behind": (size) => `a;${repeated(" ", size)}`,
  commas: (size) => repeated(",", size),
  semicolons: (size) => repeated(";", size),
  equals: (size) => repeated("=", size),
  quotes: (size) => repeated('"', size),
  backslashes: (size) => `a; b="${repeated("\\", size)}`,
  "escaped quotes": (size) => `a; b="${repeated('\\"', size)}`,
  parameters: (size) => `a/b${numbered(size, (at) => `; a${at}=b`, "")}`,
  "one parameter": (size) => `a/b${repeated("; a=b", size)}`,
  "quoted parameters": (size) => `a/b${numbered(size, (at) => `; a${at}="b"`, "")}`,
  "cut parameters": (size) => `a/b${repeated('; a="', size)}`,
  "open and blanks": (size) => repeated("; ", size),
  types: (size) => repeated("text/html;q=0.5,", size),
  encodings: (size) => repeated("gzip;q=0.5, ", size),
  ranges: (size) => `bytes=${repeated("0-0,", size)}`,
  "a long range": (size) => `bytes=${repeated("1", size)}-`,
  "blanks in a range": (size) => `bytes=1${repeated(" ", size)}x`,
  tags: (size) => repeated('W/"a",', size),
  "open tags": (size) => repeated('W/"', size),
  addresses: (size) => repeated("1.2.3.4, ", size),
  for: (size) => repeated('for="[::1]:1";proto=https, ', size),
  percents: (size) => repeated("%", size),
  escapes: (size) => repeated("%41", size),
  "bad escapes": (size) => repeated("%ff", size),
  extended: (size) => `a; b*=UTF-8''${repeated("%41", size)}`,
  slashes: (size) => `/${repeated("/", size)}x`,
  "up and down": (size) => repeated("/a/..", size),
  up: (size) => repeated("/..", size),
  dots: (size) => repeated("/.", size),
  "a scheme": (size) => `bearer ${repeated(" a", size)}`,
  "blanks in credentials": (size) => `bearer a${repeated(" ", size)}b`,
  words: (size) => repeated("a ", size),
  letters: (size) => repeated("a", size),
  digits: (size) => repeated("1", size),
  underscores: (size) => `1${repeated("_1", size)}`,
  exponents: (size) => `1e${repeated("1", size)}`,
  points: (size) => `${repeated("1", size / 2)}.${repeated("1", size / 2)}`,
  colons: (size) => repeated("a:", size),
  brackets: (size) => repeated("[", size),
  "control characters": (size) => repeated("\u202e", size),
  marks: (size) => repeated("<>&'\"", size),
};

const conditions = (value: string) =>
  sentHeaders({
    "if-match": value,
    "if-none-match": value,
    "if-modified-since": value,
    "if-unmodified-since": value,
  });
const forwarding = (value: string) =>
  ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded"].flatMap((name) => [name, value]);

const state = { etag: '"x"', modified: 0 };
const legacy = new TrustedProxies(["0.0.0.0/0", "::/0"]);
const current = new TrustedProxies(["0.0.0.0/0", "::/0"], false);

const queries: Readonly<Record<string, Make<string>>> = {
  ...values,
  arguments: (size) => repeated("arg=a&", size),
  "one option": (size) => repeated("encoding=a&", size),
  options: (size) => repeated("timeout=a&enc=b&", size),
  unknown: (size) => numbered(size, (at) => `x${at}=1`, "&"),
  numbers: (size) => `inline-limit=${repeated("1", size)}`,
  "underscored numbers": (size) => `inline-limit=1${repeated("_1", size)}`,
  "odd numbers": (size) => `inline-limit=${repeated("1", size)}x`,
  pluses: (size) => `arg=${repeated("+%2B", size)}`,
};

async function call(query: string): Promise<unknown> {
  const found = find(table, ["add"]);
  return found && parse(found, query, { type: "", parts: () => Readable.from([]) });
}

/** Yields pieces as a socket does. */
async function* pieces(bytes: Uint8Array, length = 64 * KIB): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) {
    await new Promise(setImmediate);
    yield Buffer.from(bytes.buffer, bytes.byteOffset + at, Math.min(length, bytes.length - at));
  }
}

async function drained(source: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of source);
}

const part = (head: string, content: string) => `--b\r\n${head}\r\n\r\n${content}\r\n`;
const named = (name: string) => `Content-Disposition: form-data; name="file"; filename="${name}"`;

const bodies: Readonly<Record<string, Make<string>>> = {
  parts: (size) => `${repeated(part(named("a"), ""), size)}--b--`,
  "parts with bare line feeds": (size) => `${repeated("--b\nContent-Disposition: form-data; name=a\n\n\n", size)}--b--`,
  "nearly boundaries": (size) => `${part(named("a"), repeated("\r\n--", size))}--b--`,
  "nearly ends": (size) => `${part(named("a"), repeated("\r\n--b-", size))}--b--`,
  "carriage returns": (size) => `${part(named("a"), repeated("\r", size))}--b--`,
  "line feeds": (size) => `--b\n\n${repeated("\n--b", size)}`,
  "no boundary": (size) => repeated("\n", size),
  "padded boundary": (size) => `--b${repeated(" ", size)}`,
  "a long header": (size) => part(`X: ${repeated("a", size)}`, ""),
  "header lines": (size) => part(repeated("a: b\r\n", size), ""),
  "a name of blanks": (size) => part(named(repeated(" ", Math.min(size, 16_000))), ""),
  "a deep name": (size) => `${part(named(repeated("a/", Math.min(size, 16_000))), "")}--b--`,
  "a type of blanks": (size) =>
    `${part(`${named("a")}\r\nContent-Type: a/b;${repeated(" ", Math.min(size, 16_000))}x`, "")}--b--`,
};

const body = async (text: string) => {
  const parts = readParts(pieces(utf8(text)), "multipart/form-data; boundary=b", { parts: 1_000_000 });
  for await (const entry of treeOf(parts as AsyncIterable<never>).entries())
    if (entry.kind === "file") await drained(entry.body);
};

const tarBlock = (type: string, size: number, name = "a") => {
  const block = Buffer.alloc(512);
  block.write(name, 0, "latin1");
  block.write("0000644\0", 100);
  block.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  block.write("00000000000\0", 136);
  block.write(type, 156);
  block.write("ustar\u000000", 257, "latin1");
  block.write("        ", 148);
  const sum = block.reduce((all, byte) => all + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
};
const padded = (content: Buffer) => Buffer.concat([content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
const record = (text: string) => {
  const length = text.length + 2;
  const whole = length + String(length + String(length).length).length;
  return `${whole} ${text}\n`;
};
const special = (type: string, text: string) =>
  Buffer.concat([tarBlock(type, text.length), padded(Buffer.from(text, "latin1")), tarBlock("0", 0)]);

const tars: Readonly<Record<string, Make<Uint8Array>>> = {
  entries: (size) => Buffer.concat(Array.from({ length: size / 512 }, () => tarBlock("0", 0))),
  records: (size) =>
    special(
      "x",
      numbered(Math.min(size, MIB - 1000), (at) => record(`a${at}=b`), ""),
    ),
  "one record": (size) => special("x", repeated(record("a=b"), Math.min(size, MIB))),
  "a long path": (size) => special("x", record(`path=${repeated("a/", Math.min(size, MIB - 100))}`)),
  "a path of slashes": (size) => special("x", record(`path=a${repeated("/", Math.min(size, MIB - 100))}a`)),
  "a long name": (size) => special("L", repeated("a/", Math.min(size, MIB - 100))),
  blanks: (size) => special("x", repeated(" ", Math.min(size, MIB))),
  digits: (size) => special("x", repeated("1", Math.min(size, MIB))),
  "global records": (size) =>
    Buffer.concat(
      Array.from({ length: size / 1024 }, () => Buffer.concat([tarBlock("g", 8), padded(Buffer.from("8 a=bcd\n"))])),
    ),
};

const sections = (size: number, length: number): Uint8Array => {
  const header = Buffer.from(
    "3aa265726f6f747381d82a5825000155122000000000000000000000000000000000000000000000000000000000000000006776657273696f6e01".replace(
      /^3a/,
      "3a",
    ),
    "hex",
  );
  const block = Buffer.concat([Buffer.from("0155001f", "hex").subarray(0, 3), Buffer.of(length), Buffer.alloc(length)]);
  const whole = Buffer.concat([Buffer.of(block.length + length), block, Buffer.alloc(length)]);
  return Buffer.concat([header, ...Array.from({ length: size / whole.length }, () => whole)]);
};

const cars: Readonly<Record<string, Make<Uint8Array>>> = {
  "small sections": (size) => sections(size, 1),
  "empty sections": (size) => Buffer.concat([sections(1, 1), Buffer.alloc(size)]),
  "a long varint": (size) => Buffer.alloc(size, 0x80),
};

const documents: Readonly<Record<string, Make<string>>> = Object.fromEntries(
  Object.entries(json).map(([shape, make]) => [shape, (size) => Buffer.from(make(size)).toString("latin1")]),
);

const listed: Readonly<Record<string, Make<unknown>>> = {
  names: (size) => ({ Names: Array.from({ length: size / 10 }, () => "a<&>\u2028") }),
  "a long text": (size) => ({ Text: repeated("<&>\u2028\\b\f", size) }),
  "control characters": (size) => ({ Text: repeated("\u0001", size) }),
  bigints: (size) => ({ Sizes: Array.from({ length: size / 20 }, () => 2n ** 63n) }),
};

export const requestTargets: readonly InputTarget[] = [
  target("paths of requests", HEAD, values, (text) => [
    parseTarget(`/${text}`),
    parseTarget(`http://${text}`),
    decodePath(text),
    encodePath(text),
    hostName(text),
  ]),
  target("ranges and conditions", HEAD, values, (text) => {
    parseRanges(text, 1000);
    precondition(conditions(text), state);
    rangeApplies(text, state);
  }),
  target("forwarding", HEAD, values, (text) =>
    [legacy, current].map((proxies) => proxies.client("127.0.0.1", false, forwarding(text))),
  ),
  target("accepted types", HEAD, values, (text) => preferredType("html", "json")(text)),
  target("tokens", HEAD, values, (text) => [readAuthorization(text), contains_token(text, "upgrade")]),
  target("header fields", HEAD, { lines: (size) => size }, (size) => {
    const raw = Array.from({ length: Math.floor(size / 4) * 2 }, (_, at) => (at % 2 === 0 ? `a${at % 64}` : "b"));
    return [scanHead(raw), headerTable(raw)];
  }),
  target("cookies and repeated fields", HEAD, { cookies: (size) => size }, (size) =>
    headerTable(Array.from({ length: size }, (_, at) => (at % 2 === 0 ? "cookie" : "b"))),
  ),
  target("parameters of parts", HEAD, values, (text) => [parseParameters(text), parseMediaType(text), pathOf(text)]),
  target(
    "forms",
    10 * MIB,
    queries,
    formdecode,
    "formdecode returns its result at once: http_max_content_size limits its input",
  ),
  target("text for pages and logs", HEAD, values, (text) => [escape_html(text), printable(text)]),
  target("queries of the RPC", HEAD, queries, call),
  target("values of options", HEAD, values, (text) => {
    for (const type of ["int", "int64", "uint", "uint64", "float64", "bool", "string"] as const) {
      try {
        convert(type, text, "x");
      } catch {}
    }
  }),
  target("bodies in parts", 4 * MIB, bodies, body),
  target("tar archives", 4 * MIB, tars, (bytes) => drained(readTar(pieces(bytes)))),
  target("CAR archives", 4 * MIB, cars, (bytes) => drained(readCar(pieces(bytes)))),
  target("configurations", 192 * KIB, documents, (text) => [printTree(parseTree(text)), printJson(parseJson(text))]),
  target(
    "keys of configurations",
    HEAD,
    { dots: (size) => repeated("a.", size), "one key": (size) => repeated("a", size) },
    (path) => [getAt({}, path), setAt({}, path, 1)],
  ),
  target("responses as JSON", BLOCK, listed, goJson),
  target("responses as XML", BLOCK, listed, (value) => toXml(value, "any")),
];
