import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import type { TlsOptions } from "node:tls";
import { type Client, new_client, type RequestFailure, type RequestOptions } from "#core/net/http.ts";
import { makeSelfSigned } from "#core/tls/self_signed.ts";
import { resetSocket } from "#test/support/reset_socket.ts";
import { barePeer, failure, httpsPeer, rawPeer } from "./peers.ts";

const short = { timeout: 0.2, body_timeout: 0.2 };
const patient = { timeout: 60, body_timeout: 60, connect_timeout: 60 };

let client: Client;
before(() => {
  client = new_client(patient);
});
after(async () => client.close());

/** Writes the piece for as long as the client accepts it. */
function flood(socket: Socket, piece: string | Buffer): void {
  const pour = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", pour);
  pour();
}

/** Writes the piece repeatedly and slowly. */
function drip(socket: Socket, piece: string, start = ""): void {
  socket.write(start);
  const timer = setInterval(() => socket.write(piece), 20);
  socket.on("close", () => clearInterval(timer));
}

const head = (...fields: string[]) => `${["HTTP/1.1 200 OK", ...fields].join("\r\n")}\r\n\r\n`;

interface Hostile {
  readonly title: string;
  readonly code: RequestFailure;
  /** Matches a part of the error message. */
  readonly says?: RegExp;
  readonly respond: (socket: Socket) => unknown;
  readonly options?: RequestOptions;
}

const hostile: Hostile[] = [
  { title: "never answers", code: "timeout", says: /no response in time \(timeout: 0\.2 s\)/, respond: () => {} },
  { title: "sends its header byte by byte", code: "timeout", respond: (socket) => drip(socket, "x", "HTTP/1.1 200 ") },
  {
    title: "sends header fields one by one without end",
    code: "timeout",
    respond: (socket) => drip(socket, "a: b\r\n", "HTTP/1.1 200 OK\r\n"),
  },
  {
    title: "sends interim answers without end",
    code: "timeout",
    respond: (socket) => drip(socket, "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"),
  },
  {
    title: "sends a byte of the body and then stays silent",
    code: "timeout",
    says: /further piece .*body_timeout: 0\.2 s/,
    options: { timeout: 60 },
    respond: (socket) => socket.write(`${head("content-length: 100")}x`),
  },
  {
    title: "sends chunk extensions without end",
    code: "timeout",
    respond: (socket) => drip(socket, ";x=y", `${head("transfer-encoding: chunked")}1`),
  },
  {
    title: "sends trailers without end",
    code: "header-too-large",
    respond: (socket) => {
      socket.write(`${head("transfer-encoding: chunked")}0\r\n`);
      flood(socket, "a: b\r\n".repeat(1000));
    },
  },
  {
    title: "sends header fields without end, fast",
    code: "header-too-large",
    says: /16384 bytes \(option max_header\)/,
    respond: (socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      flood(socket, "a: b\r\n".repeat(1000));
    },
  },
  {
    title: "sends one header value without end",
    code: "header-too-large",
    respond: (socket) => {
      socket.write("HTTP/1.1 200 OK\r\na: ");
      flood(socket, "b".repeat(10_000));
    },
  },
  {
    title: "sends a status line without end",
    code: "timeout",
    respond: (socket) => {
      socket.write("HTTP/1.1 200 ");
      flood(socket, "b".repeat(10_000));
    },
  },
  {
    title: "sends a header larger than max_header",
    code: "header-too-large",
    says: /1000 bytes/,
    options: { max_header: 1000 },
    respond: (socket) => socket.end(head(`a: ${"b".repeat(1000)}`)),
  },
  {
    title: "sends a body without end",
    code: "too-large",
    says: /1000000 bytes \(option max_body\)/,
    options: { max_body: 1_000_000 },
    respond: (socket) => {
      socket.write(head());
      flood(socket, Buffer.alloc(65_536));
    },
  },
  {
    title: "sends tiny chunks without end",
    code: "too-large",
    options: { max_body: 100_000 },
    respond: (socket) => {
      socket.write(head("transfer-encoding: chunked"));
      flood(socket, "1\r\nx\r\n".repeat(1000));
    },
  },
  {
    title: "sends a chunk size that is none",
    code: "bad-response",
    respond: (socket) => socket.write(`${head("transfer-encoding: chunked")}zz\r\nabc\r\n`),
  },
  {
    title: "sends a chunk longer than it says",
    code: "bad-response",
    respond: (socket) => socket.write(`${head("transfer-encoding: chunked")}2\r\nabcdef\r\n0\r\n\r\n`),
  },
  {
    title: "sends a chunk size beyond all numbers",
    code: "bad-response",
    respond: (socket) => socket.write(`${head("transfer-encoding: chunked")}${"f".repeat(40)}\r\n`),
  },
  {
    title: "sends two lengths that differ",
    code: "bad-response",
    respond: (socket) => socket.write(`${head("content-length: 1", "content-length: 2")}ab`),
  },
  {
    title: "sends both a length and chunks",
    code: "bad-response",
    respond: (socket) => socket.write(`${head("content-length: 3", "transfer-encoding: chunked")}0\r\n\r\n`),
  },
  {
    title: "sends a negative length",
    code: "bad-response",
    respond: (socket) => socket.write(head("content-length: -1")),
  },
  {
    title: "sends less than its length",
    code: "connection-closed",
    respond: (socket) => socket.end(`${head("content-length: 10")}abc`),
  },
  {
    title: "sends less than its length on a connection to be closed",
    code: "connection-closed",
    respond: (socket) => socket.end(`${head("content-length: 10", "connection: close")}abc`),
  },
  ...["keep-alive", "close"].map(
    (field): Hostile => ({
      title: `ends in the middle of a chunk, connection: ${field}`,
      code: "connection-closed",
      respond: (socket) => socket.end(`${head("transfer-encoding: chunked", `connection: ${field}`)}a\r\nabc`),
    }),
  ),
  { title: "closes at once", code: "connection-closed", respond: (socket) => socket.end() },
  { title: "closes in the middle of its header", code: "connection-closed", respond: (s) => s.end("HTTP/1.1 200 O") },
  { title: "resets at once", code: "connection-closed", respond: (socket) => resetSocket(socket) },
  ...["content-length: 10", "transfer-encoding: chunked", "connection: close"].map(
    (field): Hostile => ({
      title: `resets in the middle of a body with ${field}`,
      code: "connection-closed",
      respond: (socket) => {
        const start = field.startsWith("transfer") ? "a\r\nabc" : "abc";
        socket.write(head(field) + start, () => setImmediate(() => resetSocket(socket)));
      },
    }),
  ),
  { title: "answers as HTTP/0.9 did", code: "bad-response", respond: (socket) => socket.end("<html>Hello</html>") },
  { title: "speaks another protocol", code: "bad-response", respond: (socket) => socket.write("SSH-2.0-x\r\n") },
  {
    title: "speaks HTTP/2 unasked",
    code: "bad-response",
    respond: (socket) => socket.write(Buffer.from("000000040000000000", "hex")),
  },
  {
    title: "puts a control character into its header",
    code: "bad-response",
    respond: (socket) => socket.write(head("a: b\0c")),
  },
  {
    title: "changes the protocol unasked",
    code: "bad-response",
    respond: (socket) => socket.write("HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
  },
  {
    title: "redirects in a circle",
    code: "too-many-redirects",
    says: /after 3 redirects/,
    options: { follow: 3 },
    respond: (socket) => socket.end("HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n"),
  },
  {
    title: "redirects with a body without end",
    code: "too-many-redirects",
    options: { follow: 1 },
    respond: (socket) => {
      socket.write("HTTP/1.1 302 Found\r\nlocation: /x\r\n\r\n");
      flood(socket, Buffer.alloc(65_536));
    },
  },
  {
    title: "redirects to a file",
    code: "bad-redirect",
    says: /redirects to file:\/\/\/etc\/passwd/,
    options: { follow: 3 },
    respond: (socket) => socket.end("HTTP/1.1 302 Found\r\nlocation: file:///etc/passwd\r\ncontent-length: 0\r\n\r\n"),
  },
];

describe("a server that", () => {
  for (const { title, code, says = /./, respond: response, options = {} } of hostile) {
    for (const response_type of ["text", "stream"] as const) {
      test(`${title} causes ${code}, with the body as ${response_type}`, async () => {
        await using peer = await rawPeer(response);
        const limits = { ...(code === "timeout" ? short : patient), max_body: 64 * 1024 * 1024, ...options };
        const reading = async () => {
          const { body } = await client.request(`${peer.url}/`, { response_type, ...limits });
          if (body instanceof Readable) await body.toArray();
        };
        assert.match((await failure(code, reading())).message, says);
        await peer.idle();
      });
    }
  }
});

describe("a server that", () => {
  test("sends its body one byte at a time costs memory only for the bytes", { timeout: 300_000 }, async () => {
    const length = 3_000_000;
    await using peer = await rawPeer((socket) => {
      socket.write(head("transfer-encoding: chunked"));
      socket.end(`${"1\r\nx\r\n".repeat(length)}0\r\n\r\n`);
    });
    const sampled: number[] = [];
    const timer = setInterval(() => sampled.push(process.memoryUsage().heapUsed), 50);
    const before = process.memoryUsage().heapUsed;
    const { body } = await client.request(peer.url, { response_type: "bytes" });
    clearInterval(timer);
    assert.equal(body.length, length);
    assert.ok(Math.max(...sampled) - before < 200 * 1024 * 1024, `${Math.max(...sampled) - before} bytes of heap`);
  });

  test("breaks off a body that nobody reads does no harm", async () => {
    await using peer = await rawPeer((socket) => {
      socket.write(`${head("content-length: 10")}abc`, () => setImmediate(() => resetSocket(socket)));
    });
    const { code, body } = await client.request(peer.url, { response_type: "stream" });
    assert.equal(code, 200);
    await new Promise((resolve) => body.once("close", resolve));
    await failure("connection-closed", body.toArray());
  });

  test("sends more than its announced length cannot inject a second response", async () => {
    await using peer = await rawPeer((socket) =>
      socket.write(`${head("content-length: 2")}ab${head("content-length: 4")}evil`),
    );
    assert.equal((await client.request(peer.url)).body, "ab");
    const second = client.request(peer.url, { response_type: "text" }).then(({ body }) => body);
    assert.equal(await second, "ab");
    assert.equal(peer.accepted, 2);
  });

  test("does not exist, or has an unknown name, causes an error", async () => {
    const peer = await rawPeer(() => {});
    await peer[Symbol.asyncDispose]();
    await failure("connection-refused", client.request(peer.url));
    // A label of this length is refused without a query.
    await failure("host-not-found", client.request(`http://${"x".repeat(64)}.invalid/`));
  });

  test("does not respond causes an error, and waiting requests can be abandoned", async () => {
    await using peer = await rawPeer(() => {});
    await using single = new_client({ connections: 1, timeout: 1 });
    const started = performance.now();
    await Promise.all(Array.from({ length: 20 }, () => failure("timeout", single.request(peer.url))));
    // If the requests waited for each other, they would take 20 seconds, and a connection each.
    assert.ok(performance.now() - started < 15_000);
    assert.ok(peer.accepted < 10, `${peer.accepted} connections`);
  });
});

describe("a TLS server that", () => {
  let valid: TlsOptions & { cert: string };
  before(async () => {
    const { certificate, key } = await makeSelfSigned(["127.0.0.1", "a.example"]);
    valid = { cert: certificate, key };
  });
  const hello = (options: TlsOptions) => httpsPeer(options, (_, response) => response.end("hello"));

  test("has an untrusted certificate is refused, unless its issuer is named or the check is off", async () => {
    await using peer = await hello(valid);
    const error = await failure("certificate-untrusted", client.request(peer.url));
    assert.match(error.message, /option ca/);
    assert.equal((await client.request(peer.url, { ca: valid.cert })).body, "hello");
    assert.equal((await client.request(peer.url, { insecure: true })).body, "hello");
    await failure("certificate-untrusted", client.request(peer.url));
  });

  test("has a certificate for another name is refused, unless that name is requested", async () => {
    const { certificate, key } = await makeSelfSigned(["a.example"]);
    await using peer = await hello({ cert: certificate, key });
    await failure("certificate-name", client.request(peer.url, { ca: certificate }));
    assert.equal((await client.request(peer.url, { ca: certificate, servername: "a.example" })).body, "hello");
  });

  test("has a certificate that has expired or is not valid yet is refused", async () => {
    for (const year of ["2001", "2099"]) {
      const { certificate, key } = await makeSelfSigned(["127.0.0.1"], new Date(`${year}-01-01`));
      await using peer = await hello({ cert: certificate, key });
      await failure("certificate-expired", client.request(peer.url, { ca: certificate }));
    }
  });

  test("requires a certificate gets the given one, and no other origin does", async () => {
    const mine = await makeSelfSigned(["client.example"]);
    const requesting = { ...valid, requestCert: true, rejectUnauthorized: false };
    const shown: string[] = [];
    const listener = (target?: string) =>
      httpsPeer(requesting, ({ socket }, response) => {
        const { subject } = (socket as import("node:tls").TLSSocket).getPeerCertificate();
        shown.push(subject?.CN?.toString() ?? "none");
        response.writeHead(target === undefined ? 200 : 302, target === undefined ? {} : { location: target }).end();
      });
    await using second = await listener();
    await using first = await listener(second.url);
    const options = { ca: valid.cert, cert: mine.certificate, key: mine.key, follow: 1 };
    await client.request(first.url, options);
    assert.deepEqual(shown, ["client.example", "none"]);
    await using strict = await hello({ ...valid, requestCert: true, ca: mine.certificate });
    await failure("connection-closed", client.request(strict.url, { ca: valid.cert }));
  });

  test("is a plain one causes an error, as does a plain server that speaks TLS", async () => {
    await using plain = await rawPeer((socket) => socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"));
    await failure("tls", client.request(plain.url.replace("http:", "https:")));
    await using tls = await hello(valid);
    await failure("connection-closed", client.request(tls.url.replace("https:", "http:")));
  });

  test("cannot use these keys causes an error", async () => {
    await using peer = await hello(valid);
    await failure("tls", client.request(peer.url, { ca: valid.cert, cert: "garbage", key: "garbage" }));
    await failure("certificate-untrusted", client.request(peer.url, { ca: "garbage" }));
    assert.equal((await client.request(peer.url, { ca: valid.cert })).body, "hello");
  });

  test("is requested with ever different options does not accumulate connections", async () => {
    await using peer = await hello(valid);
    await using own = new_client({ ca: valid.cert, keep_alive: 60 });
    for (let number = 0; number < 40; number++) await own.request(peer.url, { max_header: 10_000 + number });
    assert.ok(peer.open <= 33, `${peer.open} connections`);
    await own.close();
    await peer.idle();
  });

  test("never begins the handshake is given up after connect_timeout", async () => {
    await using peer = await barePeer(() => {});
    const options = { connect_timeout: 0.2 };
    const error = await failure("timeout", client.request(peer.url.replace("http:", "https:"), options));
    assert.match(error.message, /no connection in time \(connect_timeout: 0\.2 s\)/);
    await peer.idle();
  });

  test("closes the connection in the handshake causes an error", async () => {
    await using peer = await barePeer((socket) => socket.end());
    await failure("connection-closed", client.request(peer.url.replace("http:", "https:")));
  });
});
