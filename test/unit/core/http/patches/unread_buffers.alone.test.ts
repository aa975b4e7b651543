/** Replaces a function of Node's own sockets, and leaves large reads switched off. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { connect } from "node:net";
import { test } from "node:test";
import { whyBodiesAreInSmallPieces } from "#core/http/patches/node/large_body.ts";
import type { HttpEvent } from "#core/types.ts";
import { RawConnection } from "#test/support/raw.ts";
import { TestService } from "#test/support/service.ts";

const content = randomBytes(5 * 1024 * 1024);
const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const body = Buffer.concat([
  Buffer.from('--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'),
  content,
  Buffer.from("\r\n--b--\r\n"),
]);
const head = `POST /app/ HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: ${body.length}\r\n\r\n`;

const finished: string[] = [];
const app = {
  streaming_uploads: true,
  route: {
    "POST /": async ({ request }: HttpEvent) => {
      const hash = createHash("sha256");
      for await (const part of request.parts()) for await (const piece of part.passing) hash.update(piece);
      finished.push(hash.digest("hex"));
      return `<${finished.at(-1)}>`;
    },
  },
};

test("when Node reads into other memory, the upload fails, and later ones arrive whole in Node's own pieces", async () => {
  await using service = await TestService.start(app);
  const socket = connect(service.port, "127.0.0.1");
  const { _handle: handle } = socket as unknown as { _handle: { useUserBuffer(): void } };
  Object.getPrototypeOf(handle).useUserBuffer = () => undefined;
  socket.destroy();

  assert.equal(whyBodiesAreInSmallPieces(), undefined);
  using failed = await RawConnection.open(service.port, { timeout: 30_000 });
  failed.write(Buffer.concat([Buffer.from(head), body]));
  await assert.rejects(failed.until(/HTTP/));
  assert.deepEqual(finished, []);

  assert.match(whyBodiesAreInSmallPieces() ?? "", /uploads take more CPU time/);
  using next = await RawConnection.open(service.port, { timeout: 30_000 });
  next.write(Buffer.concat([Buffer.from(head), body]));
  await next.until(/<\w+>/);
  assert.ok(next.text.includes(hashOf(content)));
});
