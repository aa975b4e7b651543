import assert from "node:assert/strict";
import { createReadStream, type ReadStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { bounded } from "#modules/mod_http_files/patches/node/bounded.ts";

const content = Buffer.alloc(200_000, "0123456789");
let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "modhost-bounded-"));
  await writeFile(join(folder, "file"), content);
});
after(() => rm(folder, { recursive: true }));

for (const length of [0, 1, 65_536, 70_000, content.length]) {
  test(`a bounded stream of a file returns its first ${length} bytes`, async () => {
    const stream = createReadStream(join(folder, "file"));
    const short = bounded(stream, length);
    assert.equal(short, stream, "the very stream, bounded by its field");
    assert.deepEqual(await buffer(short), content.subarray(0, length));
  });

  test(`a bounded stream without the field returns its first ${length} bytes`, async () => {
    const plain = Readable.from([content.subarray(0, 100_000), content.subarray(100_000)]) as unknown as ReadStream;
    assert.deepEqual(await buffer(bounded(plain, length)), content.subarray(0, length));
  });
}
