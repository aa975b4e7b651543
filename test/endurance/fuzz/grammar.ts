/**
 * Makes requests that are nearly right: it builds them from a grammar, and then damages them. All
 * text is Latin-1, one character per byte.
 */
import type { Random } from "./random.ts";

const methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND", "CONNECT", "get", "BREW", ""];
const bases = ["/fuzz", "/fuzz/echo", "/www", "/odd", "/health/live", "/none", "/up/raw", ""];
/** Method and path pairs whose handlers read the body. */
const readers = [
  ["POST", "/fuzz/form"],
  ["POST", "/fuzz/parts"],
  ["POST", "/up/parts"],
  ["POST", "/up/raw"],
  ["GET", "/fuzz/echo"],
  ["GET", "/www/page.html"],
  ["HEAD", "/www/a/"],
] as const;
const segments = [
  "a",
  "..",
  ".",
  "%2e%2e",
  "%2F",
  "%",
  "%zz",
  "%00",
  "%ff",
  "%3F",
  "*",
  "(",
  "{z}",
  ":id",
  "page.html",
  "+",
];
const versions = ["HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "HTTP/1.2", "http/1.1", "HTTP/", ""];
const lineEnds = ["\n", "\r", "\r\r\n", ""];
const headers = [
  "Connection: close",
  "Connection: keep-alive, Upgrade",
  "Upgrade: h2c",
  "Upgrade: websocket",
  "Expect: 100-continue",
  "Content-Encoding: gzip",
  "Range: bytes=0-1,3-",
  "Range: bytes=9-1",
  "Range: bytes=-0",
  'If-None-Match: W/"x", *',
  "If-Modified-Since: Mon, 99 Foo 2026 00:00:00 GMT",
  "Accept-Encoding: br;q=0, gzip;q=9, *",
  "Accept: application/json;q=x",
  "Cookie: a=1; b",
  "Origin: null",
  "Access-Control-Request-Method: GET",
  "X-Forwarded-For: 1.2.3.4, evil, ::1",
  "X-Forwarded-Proto: https",
  'Forwarded: for="[::1]:x";proto=https,,;',
  "Trailer: X-T",
  "__proto__: x",
];
/** Header lines that change where a request ends, or that no request may have. */
const badHeaders = [
  "Expect: 200-maybe",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip, chunked",
  "Transfer-Encoding: identity",
  "Content-Length: 0",
  "Content-Length: 5",
  "Content-Length: -1",
  "Content-Length: 99999999999",
  "Host: other.example",
  "Host:",
  " folded",
  ": nameless",
];
const hosts = ["Host: localhost:80", "Host: [::1", "Host: a b", "Host: ", ""];

/** Makes a request as pieces of bytes, which are written separately. */
export function makeRequest(random: Random): string[] {
  let text = Array.from({ length: random.chance(0.1) ? 1 + random.below(4) : 1 }, () => oneRequest(random)).join("");
  if (random.chance(0.3)) text = damage(random, text);
  if (random.chance(0.1)) text = text.slice(0, random.below(text.length + 1));
  return split(random, text);
}

function oneRequest(random: Random): string {
  const end = () => (random.chance(0.99) ? "\r\n" : random.pick(lineEnds));
  const { type, body } = makeBody(random);
  const [method, target] = random.chance(0.6) ? random.pick(readers) : [random.pick(methods), makeTarget(random)];
  const version = random.chance(0.95) ? "HTTP/1.1" : random.pick(versions);
  const lines = [`${method} ${target} ${version}`, random.chance(0.95) ? "Host: x" : random.pick(hosts)];
  lines.push(...random.some(3, () => makeHeader(random)));
  if (type !== "") lines.push(`Content-Type: ${type}`);
  const chunked = random.chance(0.3);
  if (chunked) lines.push("Transfer-Encoding: chunked");
  else if (body !== "" || random.chance(0.2))
    lines.push(`Content-Length: ${body.length + (random.chance(0.1) ? random.below(20) - 10 : 0)}`);
  return `${lines
    .filter((line) => line !== "")
    .map((line) => line + end())
    .join("")}${end()}${chunked ? chunk(random, body) : body}`;
}

export function makeTarget(random: Random): string {
  const path = `${random.pick(bases)}${random.some(4, () => `/${random.pick(segments)}`).join("")}${random.chance(0.2) ? "/" : ""}`;
  const query = random.chance(0.3)
    ? `?${random.pick(["", "?", "a=1&b", "%", "=&=", random.bytes(20).replace(/[\s#]/g, "")])}`
    : "";
  if (random.chance(0.05))
    return random.pick(["*", "http://x", "http://x:y/fuzz", "ftp://x/", "//x//fuzz", "/".repeat(500), "x:80", "\\"]);
  return `${path}${query}`.replaceAll(" ", "%20") || "/";
}

function makeHeader(random: Random): string {
  if (random.chance(0.85)) return random.pick(headers);
  if (random.chance(0.6)) return random.pick(badHeaders);
  return `${random.pick(["X-A", "x_b", "Accept", "Range", random.bytes(8)])}: ${random.bytes(30)}`;
}

function makeBody(random: Random): { type: string; body: string } {
  switch (random.below(4)) {
    case 0:
      return { type: "", body: "" };
    case 1:
      return { type: "text/plain", body: random.bytes(random.chance(0.05) ? 40_000 : 100) };
    case 2:
      return { type: "application/x-www-form-urlencoded", body: makeForm(random) };
    default:
      return makeMultipart(random);
  }
}

export function makeForm(random: Random): string {
  const word = () =>
    random.pick(["a", "b", "__proto__", "constructor", "%", "%41", "%zz", "+", "=", "", "%c3", "%00", random.bytes(6)]);
  return random
    .some(8, () => `${word()}${random.pick(["=", "=", "=", ""])}${word()}`)
    .join(random.pick(["&", "&", ";", "&&"]));
}

function makeMultipart(random: Random): { type: string; body: string } {
  const boundary = random.pick(["b", "----x", "'()+_,-./:=?", "a b", "x".repeat(70), "x".repeat(200)]);
  const end = () => (random.chance(0.99) ? "\r\n" : random.pick(lineEnds));
  const disposition = () =>
    random.pick([
      'form-data; name="f"',
      'form-data; name="f"; filename="a.txt"',
      'form-data; name="f"; filename="..\\..\\a"',
      "form-data; name=f; filename*=UTF-8''%e2%82%ac",
      "form-data; name=f; filename*=bad''%",
      "form-data",
      'attachment; filename="unclosed',
      random.bytes(30),
    ]);
  const part = () =>
    `--${boundary}${end()}Content-Disposition: ${disposition()}${end()}` +
    random
      .some(
        3,
        () =>
          `${random.pick(["Content-Type: text/plain", "Content-Transfer-Encoding: base64", "X: y", `X: ${"y".repeat(random.below(3) * 9000)}`])}${end()}`,
      )
      .join("") +
    `${end()}${random.bytes(60)}${end()}`;
  const close = random.pick([
    `--${boundary}--\r\n`,
    `--${boundary}--`,
    `--${boundary}`,
    "",
    `--${boundary}--\r\nepilogue`,
  ]);
  const shown = random.pick([`"${boundary}"`, boundary, "", '"', `${boundary}; boundary=other`]);
  return {
    type: `multipart/form-data${random.chance(0.95) ? `; boundary=${shown}` : ""}`,
    body: random.some(4, part).join("") + close,
  };
}

function chunk(random: Random, body: string): string {
  let rest = body;
  let text = "";
  while (rest !== "") {
    const piece = rest.slice(0, 1 + random.below(40));
    rest = rest.slice(piece.length);
    const size = random.chance(0.98)
      ? piece.length.toString(16)
      : random.pick(["", "-1", "0x5", "ffffffffffffffff", "g"]);
    text += `${size}${random.chance(0.05) ? ';ext="x"' : ""}\r\n${piece}\r\n`;
  }
  return `${text}${random.pick(["0\r\n\r\n", "0\r\n\r\n", "0\r\n\r\n", "0\r\nX-T: 1\r\n\r\n", "0\r\n", "00000\r\n\r\n", ""])}`;
}

/** Damages a text in one to three positions. */
function damage(random: Random, text: string): string {
  let damaged = text;
  for (let n = 1 + random.below(3); n > 0; n--) {
    const at = random.below(damaged.length + 1);
    const length = random.below(12);
    const remaining = damaged.slice(at + length);
    switch (random.below(4)) {
      case 0:
        damaged = damaged.slice(0, at) + remaining;
        break;
      case 1:
        damaged = damaged.slice(0, at) + random.bytes(12) + damaged.slice(at);
        break;
      case 2:
        damaged = damaged.slice(0, at) + damaged.slice(at, at + length).repeat(1 + random.below(4)) + remaining;
        break;
      default:
        damaged =
          damaged.slice(0, at) +
          random.pick(["\r\n", "\n", "\0", " ", "\t", ":", "%", "/", "--", "\xff", "0"]) +
          remaining;
    }
  }
  return damaged;
}

function split(random: Random, text: string): string[] {
  if (random.chance(0.6)) return [text];
  const pieces: string[] = [];
  for (let rest = text; rest !== "" && pieces.length < 20; ) {
    const piece = pieces.length === 19 ? rest : rest.slice(0, 1 + random.below(rest.length));
    pieces.push(piece);
    rest = rest.slice(piece.length);
  }
  return pieces;
}

/** Makes route keys of any shape; most of them are invalid. */
export function makeRouteKey(random: Random): string {
  const path = random.some(4, () => `/${random.pick([...segments, "*", random.bytes(4)])}`).join("");
  return `${random.pick(["GET", "get", "POST", "*", "", "FOO", random.bytes(3)])}${random.pick([" ", "  ", "", "\t"])}${path}`;
}
