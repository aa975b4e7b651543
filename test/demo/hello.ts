/**
 * `npm run demo:hello`: serves the README's module and a folder of pages on ports 5280 and 5281,
 * from an empty folder. Prints every curl command with its response. Exits with a non-zero code if
 * a response is wrong.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  createReadStream,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ended, plain, project, requireCurlAndPorts, secure, untilReady } from "./support.ts";

const folder = mkdtempSync(join(tmpdir(), "modhost-demo-"));
const megabyte = 1024 * 1024;
const downloadSize = 200 * megabyte;

interface Step {
  readonly title: string;
  /** Arguments of curl. */
  readonly curl: readonly string[];
  /** Texts that its output must contain. */
  readonly expect: readonly (string | RegExp)[];
  /** Prints at most this many lines. */
  readonly lines?: number;
}

const steps: readonly Step[] = [
  { title: "The README's module", curl: ["-i", `${plain}/hello/`], expect: [/^HTTP\/1\.1 200/, "Hello, world!"] },
  {
    title: "The same over HTTPS, HTTP/2",
    curl: ["-ki", "--http2", `${secure}/hello/`],
    expect: [/^HTTP\/2 200/, "Hello, world!"],
  },
  {
    title: "The same over HTTPS, HTTP/1.1",
    curl: ["-ki", "--http1.1", `${secure}/hello/`],
    expect: [/^HTTP\/1\.1 200/],
  },
  {
    title: "A wildcard's argument",
    curl: ["-k", `${secure}/hello/greet/Ada%20L.`],
    expect: ["Hello, Ada L.! You requested /hello/greet/Ada L."],
  },
  {
    title: "The base redirects to its slash",
    curl: ["-i", `${plain}/hello?a=1`],
    expect: [/^HTTP\/1\.1 301/, "Location: /hello/?a=1"],
  },
  { title: "HEAD", curl: ["-I", `${plain}/hello/`], expect: [/^HTTP\/1\.1 200/, "Content-Length: 14"] },
  {
    title: "An unknown path",
    curl: ["-i", `${plain}/hello/nowhere`],
    expect: [/^HTTP\/1\.1 404/, "text/html"],
    lines: 8,
  },
  {
    title: "Another method",
    curl: ["-i", "-X", "DELETE", `${plain}/hello/`],
    expect: [/^HTTP\/1\.1 405/, "Allow: GET, HEAD, OPTIONS"],
    lines: 8,
  },
  {
    title: "OPTIONS",
    curl: ["-i", "-X", "OPTIONS", `${plain}/hello/`],
    expect: [/^HTTP\/1\.1 200/, "Allow: GET, HEAD, OPTIONS"],
  },
  {
    title: "A page",
    curl: ["-i", `${plain}/site/`],
    expect: ["Content-Type: text/html; charset=utf-8", "A folder of pages", /Etag: /i],
    lines: 12,
  },
  {
    title: "A picture, over HTTP/2",
    curl: ["-kI", `${secure}/site/images/waves.png`],
    expect: [/^HTTP\/2 200/, "content-type: image/png"],
  },
  {
    title: "A folder without index is listed",
    curl: ["-H", "Accept: application/json", `${plain}/site/downloads/`],
    expect: ["readme.txt", "large.bin"],
  },
  {
    title: "A range",
    curl: ["-i", "-r", "0-14", `${plain}/site/downloads/readme.txt`],
    expect: [/^HTTP\/1\.1 206/, "Content-Range: bytes 0-14/85", "Read me first:"],
  },
  {
    title: "Two ranges",
    curl: ["-i", "-r", "0-3,8-12", `${plain}/site/downloads/readme.txt`],
    expect: [/^HTTP\/1\.1 206/, "multipart/byteranges", "first"],
  },
  {
    title: "A range past the end",
    curl: ["-i", "-r", "5000-", `${plain}/site/downloads/readme.txt`],
    expect: [/^HTTP\/1\.1 416/, "Content-Range: bytes */85"],
    lines: 8,
  },
  {
    title: "Not modified since",
    curl: ["-i", "-z", new Date(Date.now() + 60_000).toUTCString(), `${plain}/site/style.css`],
    expect: [/^HTTP\/1\.1 304/],
  },
  {
    title: "Not modified by tag",
    curl: ["-i", "-H", "If-None-Match: *", `${plain}/site/style.css`],
    expect: [/^HTTP\/1\.1 304/],
  },
  {
    title: "Out of the folder",
    curl: ["-i", "--path-as-is", `${plain}/site/%2e%2e/%2e%2e/%2e%2e/etc/passwd`],
    expect: [/^HTTP\/1\.1 400/],
    lines: 8,
  },
  {
    title: "A form",
    curl: ["-i", "-d", "name=Ada&entry=Good+morning%21", `${plain}/guestbook/`],
    expect: [/^HTTP\/1\.1 303/, "Location: /guestbook/"],
  },
  { title: "The stored messages", curl: [`${plain}/guestbook/`], expect: ["Ada: Good morning!"] },
  {
    title: "An upload of the 200 MB file, streamed",
    curl: [
      "-k",
      "-F",
      "note=a field",
      "-F",
      `file=@${join("site", "downloads", "large.bin")}`,
      `${secure}/uploads/upload`,
    ],
    expect: ["note: a field, 7 bytes", `file: large.bin, ${downloadSize} bytes`],
  },
  { title: "Health", curl: ["-i", `${plain}/health/ready`], expect: [/^HTTP\/1\.1 200/, '"ready":true'] },
];

let failures = 0;

function check(title: string, output: string, expected: readonly (string | RegExp)[]): void {
  for (const wanted of expected) {
    if (typeof wanted === "string" ? output.includes(wanted) : wanted.test(output)) continue;
    failures += 1;
    console.log(`FAILED: ${title}: the response lacks ${wanted}`);
  }
}

/** Writes a file without repeating content. Returns its SHA-256. */
function writeLargeFile(path: string): string {
  const hash = createHash("sha256");
  const file = openSync(path, "w");
  const block = Buffer.alloc(megabyte);
  for (let index = 0; index < downloadSize / megabyte; index += 1) {
    for (let at = 0; at < block.length; at += 4)
      block.writeUInt32LE(Math.imul(index * 262_144 + at, 2_654_435_761) >>> 0, at);
    hash.update(block);
    writeSync(file, block);
  }
  return hash.digest("hex");
}

function readmeModule(): string {
  const code = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(project, "README.md"), "utf8"))?.[1];
  if (code === undefined) throw new Error("README.md contains no TypeScript module");
  return code;
}

async function downloadHash(url: string): Promise<string> {
  const target = join(folder, "downloaded.bin");
  spawnSync("curl", ["-sk", "-o", target, url]);
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(target)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

requireCurlAndPorts();
writeFileSync(join(folder, "mod_hello.ts"), readmeModule());
cpSync(join(project, "test/demo/mod_guestbook.ts"), join(folder, "mod_guestbook.ts"));
cpSync(join(project, "test/demo/site"), join(folder, "site"), { recursive: true });
const sent = writeLargeFile(join(folder, "site/downloads/large.bin"));

const host = spawn(
  process.execPath,
  [join(project, "core/cli/launch.mjs"), "run", "./mod_hello.ts", "./mod_guestbook.ts", "./site"],
  {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  },
);
try {
  await untilReady(host);
  for (const { title, curl, expect, lines = 30 } of steps) {
    const { stdout } = spawnSync("curl", ["-s", ...curl], { cwd: folder, encoding: "utf8", maxBuffer: 16 * megabyte });
    console.log(`\n# ${title}\n$ curl -s ${curl.map((word) => (/[\s*&%]/.test(word) ? `'${word}'` : word)).join(" ")}`);
    console.log(stdout.split("\n").slice(0, lines).join("\n").trimEnd());
    check(title, stdout, expect);
  }
  for (const base of [plain, secure]) {
    const received = await downloadHash(`${base}/site/downloads/large.bin`);
    console.log(`\n# A download of 200 MB from ${base}: SHA-256 ${received === sent ? "equal" : "DIFFERENT"}`);
    if (received !== sent) failures += 1;
  }
} finally {
  const code = await ended(host);
  if (code !== 0) failures += 1;
  console.log(`\nThe host ended with exit code ${code} after SIGTERM.`);
  rmSync(folder, { recursive: true, force: true });
}
console.log(`${steps.length + 2} steps, ${failures} failed`);
process.exit(failures === 0 ? 0 : 1);
