import assert from "node:assert/strict";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { describe, test } from "node:test";
import type { HttpEvent } from "#core/types.ts";
import { TestService } from "#test/support/service.ts";

const echo = { route: { "POST /": (event: HttpEvent) => `${event.request.body_bytes.length}` } };

/** Returns everything that a server sends until it closes, or until `enough` has arrived. */
function converse(
  port: number,
  pieces: readonly (string | Buffer)[],
  enough = (_text: string) => false,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("error", () => resolve(text));
    socket.on("close", () => resolve(text));
    socket.setTimeout(8000, () => reject(new Error(`No end in sight after: ${text}`)));
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (enough(text)) socket.destroy();
    });
    for (const piece of pieces) socket.write(piece);
  });
}

const head = (...lines: string[]) => `${["POST /app/ HTTP/1.1", "Host: a", ...lines].join("\r\n")}\r\n\r\n`;

describe("request bodies", () => {
  test("a body of the maximum size is accepted, and one byte more gets 413", async () => {
    await using host = await TestService.start(echo, { maxContentSize: 1000 });
    const send = (size: number) => fetch(host.url("/app/"), { method: "POST", body: Buffer.alloc(size) });
    assert.equal(await (await send(1000)).text(), "1000");
    const refused = await send(1001);
    assert.equal(refused.status, 413);
    assert.match(await refused.text(), /1000 bytes/);
  });

  test("a chunked body is read whole, and gets 413 as soon as it exceeds the limit", async () => {
    await using host = await TestService.start(echo, { maxContentSize: 1000 });
    const chunk = (size: number) => `${size.toString(16)}\r\n${"x".repeat(size)}\r\n`;
    const good = head("Transfer-Encoding: chunked", "Connection: close");
    assert.match(await converse(host.port, [good, chunk(400), chunk(500), "0\r\n\r\n"]), /\r\n\r\n900$/);
    // The body never ends, and still the request gets a response.
    const responded = await converse(host.port, [good, chunk(600), chunk(600)], (text) => text.includes("1000 bytes"));
    assert.match(responded, /^HTTP\/1\.1 413 .*Connection: close/s);
  });

  test("a client that sends a large body without waiting can read the 413", async () => {
    await using host = await TestService.start(echo, { maxContentSize: 1000 });
    const size = 900 * 1024;
    const text = await converse(host.port, [head(`Content-Length: ${size}`), Buffer.alloc(size)]);
    assert.match(text, /^HTTP\/1\.1 413 /);
    assert.match(text, /1000 bytes/);
  });

  test("an endless sender is cut off after its response", async () => {
    // Nothing else ends the connection.
    const patient = { headTimeout: 600, progressTimeout: 600, idleTimeout: 600 };
    await using host = await TestService.start(echo, { maxContentSize: 1000, ...patient });
    const size = 64 * 1024 * 1024;
    const sent = await new Promise<number>((resolve) => {
      const socket = connect({ port: host.port, host: "127.0.0.1" });
      socket.on("error", () => undefined).on("close", () => resolve(socket.bytesWritten));
      socket.write(head(`Content-Length: ${size}`));
      socket.write(Buffer.alloc(size));
    });
    assert.ok(sent > 0);
  });

  test("an unread body of a route that does not exist does not become the next request", async () => {
    await using host = await TestService.start(echo);
    const inner = "GET /app/inner HTTP/1.1\r\nHost: a\r\n\r\n";
    const request = `POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: ${inner.length}\r\n\r\n${inner}${head("Content-Length: 2", "Connection: close")}ab`;
    const text = await converse(host.port, [request]);
    assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g), ["HTTP/1.1 404", "HTTP/1.1 200"]);
  });

  test("100 Continue is sent only when the body is wanted", async () => {
    await using host = await TestService.start(echo, { maxContentSize: 1000 });
    const expecting = (path: string, size: number) =>
      new Promise<{ invited: boolean; response: IncomingMessage }>((resolve, reject) => {
        let invited = false;
        const request = httpRequest({
          port: host.port,
          method: "POST",
          path,
          headers: { Expect: "100-continue", "Content-Length": size },
        });
        request.on("continue", () => {
          invited = true;
          request.end(Buffer.alloc(size));
        });
        request.on("response", (response) => {
          response.resume();
          request.destroy();
          resolve({ invited, response });
        });
        request.on("error", reject);
        request.flushHeaders();
      });
    const wanted = await expecting("/app/", 10);
    assert.deepEqual([wanted.invited, wanted.response.statusCode], [true, 200]);
    const large = await expecting("/app/", 5000);
    assert.deepEqual([large.invited, large.response.statusCode], [false, 413]);
    const nowhere = await expecting("/app/nowhere", 10);
    assert.deepEqual([nowhere.invited, nowhere.response.statusCode], [false, 404]);
  });

  test("a content coding is refused with 415, and identity is accepted", async () => {
    await using host = await TestService.start(echo);
    const send = (coding: string) =>
      fetch(host.url("/app/"), { method: "POST", body: "abc", headers: { "Content-Encoding": coding } });
    assert.equal((await send("gzip")).status, 415);
    assert.equal(await (await send("identity")).text(), "3");
  });

  test("a sender below the progress rate is cut with 408, a steady one is not", async () => {
    await using host = await TestService.start(echo, { progressTimeout: 0.3, progressBytes: 100 });
    const drip = (every: number, bytes: number, total: number) =>
      new Promise<string>((resolve) => {
        let text = "";
        let sent = 0;
        const socket = connect({ port: host.port, host: "127.0.0.1" });
        socket.on("data", (chunk) => {
          text += chunk;
          socket.end();
        });
        socket.on("error", () => undefined).on("close", () => resolve(text));
        socket.write(head(`Content-Length: ${total}`, "Connection: close"));
        const timer = setInterval(() => {
          if (sent >= total || socket.destroyed) return clearInterval(timer);
          socket.write(Buffer.alloc(Math.min(bytes, total - sent)));
          sent += bytes;
        }, every);
      });
    assert.match(await drip(50, 1, 1000), /^HTTP\/1\.1 408/);
    assert.match(await drip(50, 100, 1500), /^HTTP\/1\.1 200.*1500$/s);
  });

  test("with streaming_uploads the handler reads the body as it arrives, without a limit", async () => {
    const provider = {
      streaming_uploads: true,
      route: {
        "POST /": async (event: HttpEvent) => {
          let bytes = 0;
          for await (const chunk of event.request.body_stream) bytes += chunk.length;
          return `${bytes}`;
        },
      },
    };
    await using host = await TestService.start(provider, { maxContentSize: 1000 });
    const response = await fetch(host.url("/app/"), { method: "POST", body: Buffer.alloc(5_000_000) });
    assert.equal(await response.text(), "5000000");
  });

  test("a busy reader slows the sender down", async () => {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const provider = {
      streaming_uploads: true,
      route: {
        "POST /": async (event: HttpEvent) => {
          let bytes = 0;
          for await (const chunk of event.request.body_stream) {
            if (bytes === 0) await released;
            bytes += chunk.length;
          }
          return `${bytes}`;
        },
      },
    };
    await using host = await TestService.start(provider);
    const size = 64 * 1024 * 1024;
    const socket = connect({ port: host.port, host: "127.0.0.1" });
    let accepted = false;
    socket.write(head(`Content-Length: ${size}`, "Connection: close"));
    socket.write(Buffer.alloc(size), () => {
      accepted = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal(accepted, false);
    release();
    let text = "";
    for await (const chunk of socket) text += chunk;
    assert.match(text, new RegExp(`${size}$`));
  });

  test("a client that leaves in the middle of its body ends the handler's reading", async () => {
    let seen: unknown;
    let ended = () => {};
    const finished = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const provider = {
      streaming_uploads: true,
      route: {
        "POST /": async (event: HttpEvent) => {
          try {
            for await (const _ of event.request.body_stream);
          } catch (error) {
            seen = error;
          }
          ended();
          return "";
        },
      },
    };
    await using host = await TestService.start(provider);
    const socket = connect({ port: host.port, host: "127.0.0.1" });
    socket.write(`${head("Content-Length: 100")}abc`, () => socket.destroy());
    await finished;
    assert.equal((seen as { code?: string }).code, "BODY_ABORTED");
  });

  test("a multipart form is read part by part", async () => {
    const provider = {
      route: {
        "POST /": async (event: HttpEvent) => {
          const lines: string[] = [];
          for await (const part of event.request.parts())
            lines.push(`${part.name}=${part.filename ?? ""}:${await part.text()}`);
          return lines.join("\n");
        },
      },
    };
    await using host = await TestService.start(provider);
    const form = new FormData();
    form.append("a", "1");
    form.append("file", new Blob(["hello"]), "päge.txt");
    form.append("a", "2");
    const response = await fetch(host.url("/app/"), { method: "POST", body: form });
    assert.equal(await response.text(), "a=:1\nfile=päge.txt:hello\na=:2");
  });
});
