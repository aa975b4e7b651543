/** Heads of sections that the window of a reader may truncate anywhere. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { create } from "multiformats/hashes/digest";
import { cidOf, readSection, sectionHead } from "#node/storage/blockstore/segments/format.ts";
import { SectionReader } from "#node/storage/blockstore/segments/section_reader.ts";

const digestOf = (text: string) => create(0x12, createHash("sha256").update(text).digest());
/** The number of a `Form`: 0 for version 0, otherwise the codec plus one. */
const forms = { "version 0": 0, raw: 0x55 + 1, "dag-pb": 0x70 + 1, "a codec of two bytes": 0x0129 + 1 };

describe("a head that is truncated anywhere is distinguished from an invalid one", () => {
  for (const [name, form] of Object.entries(forms)) {
    test(name, () => {
      for (const length of [1, 100, 300, 20_000, 2 ** 20]) {
        const multihash = digestOf(name).bytes;
        const head = sectionHead(cidOf(form, multihash).bytes, length);
        for (let cut = 0; cut < head.length; cut += 1) {
          assert.equal(readSection(head.subarray(0, cut), 0), undefined, `${cut} of ${head.length} bytes`);
        }
        const { multihash: found, ...rest } = readSection(head, 0) ?? assert.fail("the head is complete");
        assert.deepEqual(rest, { headLength: head.length, length, form });
        assert.ok(Buffer.from(multihash).equals(found));
      }
    });
  }
});

test("sections are found wherever the window of the reader ends", async () => {
  const bytes = Buffer.alloc(2 ** 20);
  const cid = cidOf(0, digestOf("window").bytes);
  const second = sectionHead(cid.bytes, 10);
  for (let cut = 1; cut <= second.length; cut += 1) {
    // The first section ends this many bytes before the window does.
    const length = 2 ** 20 - cut - sectionHead(cid.bytes, 2 ** 20 - cut).length;
    const file = Buffer.concat([
      sectionHead(cid.bytes, length),
      bytes.subarray(0, length),
      second,
      bytes.subarray(0, 10),
    ]);
    const read = async ([into]: readonly Uint8Array[], at: number) => file.copy(into as Uint8Array, 0, at);
    const reader = new SectionReader({ read }, 0, file.length, { withData: true });
    assert.equal((await reader.next())?.length, length);
    assert.equal(
      (await reader.next())?.length,
      10,
      `${cut} bytes of the head are in the first window: ${reader.damage}`,
    );
  }
});
