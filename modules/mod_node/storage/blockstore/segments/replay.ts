/** Writes the content of a segment to the index, and sets damaged parts aside. */

import { hashCoded } from "../../../formats/cid/hashes.ts";
import { ownBytes } from "../../../util/own_bytes.ts";
import { sizeText } from "../../../util/size.ts";
import type { SegmentFile, SegmentFiles } from "./files.ts";
import { cidOf, isRecord, nameOf, positionAt, readRecord, type Statement, segmentHeader } from "./format.ts";
import type { IndexOverlay } from "./index_overlay.ts";
import { setAside } from "./lost_and_found.ts";
import { type Damage, salvage } from "./salvage.ts";
import { type FoundSection, SectionReader } from "./section_reader.ts";

/** Called with a sentence about a repair. */
export type Notice = (text: string) => void;

export interface ReplayOptions {
  readonly overlay: IndexOverlay;
  /**
   * Whether this is the last segment. Only this one can end in an incomplete write, because earlier
   * ones were durable when it began.
   */
  readonly last: boolean;
  readonly rebuilding: boolean;
  readonly notice: Notice;
}

/**
 * Writes the statements of a segment from an offset on to the overlay, and resolves with the length
 * of the file. Sections of the last segment are checked against their CIDs. In other segments, only
 * the lengths are checked, unless they do not fit together or a record speaks about other blocks.
 * Behind a wrong length, such a record may be the content of a block that contains an archive
 * itself. Damaged ranges are copied to `lost+found` and stay in the file. Only a damaged end of the
 * last segment is removed, because the log continues there.
 */
export function replay(files: SegmentFiles, segment: number, from: number, options: ReplayOptions): Promise<number> {
  const { overlay, last } = options;
  return files.use(segment, async (file) => {
    const size = await file.size();
    if (size < segmentHeader.length) {
      if (last) await files.begin(segment);
      return segmentHeader.length;
    }
    // The data must be durable before it is in the index.
    await file.sync();
    const apply = async (found: FoundSection, end: number, certain: boolean) => {
      applySection(options, found, { segment, end, certain });
      if (overlay.isCrowded) await overlay.apply(positionAt(segment, end));
    };
    if (!last && (await isPlain(file, from, size))) {
      const reader = new SectionReader(file, from, size, { withData: false });
      for (let found = await reader.next(); found !== undefined; found = await reader.next()) {
        await apply(found, reader.at, true);
      }
      return size;
    }
    const aside = new Aside(files, segment, options.notice);
    for await (const each of salvage(file, from, size)) {
      if ("damage" in each) {
        if (last && each.damage.to === size) return aside.end(file, each.damage);
        await aside.keep(file, each.damage);
        continue;
      }
      if (each.isRepaired) aside.reportRepair(each.found);
      await apply(each.found, each.end, each.certain);
    }
    return size;
  });
}

/**
 * Whether the lengths of all sections lead to the end, and all sections are blocks with a known
 * kind of hash.
 */
async function isPlain(file: SegmentFile, from: number, end: number): Promise<boolean> {
  const reader = new SectionReader(file, from, end, { withData: false });
  for (let found = await reader.next(); found !== undefined; found = await reader.next()) {
    if (isRecord(found) || !hasKnownHash(found)) return false;
  }
  return reader.damage === undefined;
}

function hasKnownHash({ form, multihash }: FoundSection): boolean {
  const { code, digest } = cidOf(form, multihash).multihash;
  return hashCoded(code)?.length === digest.length;
}

/** Sets damage aside and reports it. */
class Aside {
  readonly #files: SegmentFiles;
  readonly #segment: number;
  readonly #notice: Notice;

  constructor(files: SegmentFiles, segment: number, notice: Notice) {
    this.#files = files;
    this.#segment = segment;
    this.#notice = notice;
  }

  reportRepair({ offset, length, headLength }: FoundSection): void {
    const at = offset - headLength;
    this.#say(`is damaged at byte ${at}: the length there is wrong; its block of ${length} bytes was found by its CID`);
  }

  async keep(file: SegmentFile, damage: Damage): Promise<void> {
    const { from, to, reason } = damage;
    const what = `is damaged from byte ${from} to ${to} (${reason}), ${sizeText(to - from)} without a block`;
    const path = await this.#setAside(file, damage);
    this.#say(`${what}: ${path ?? "zeros only"}; the blocks after it are intact`);
  }

  /**
   * Removes a damaged end after it was copied elsewhere. Resolves with the offset at which the log
   * continues.
   */
  async end(file: SegmentFile, damage: Damage): Promise<number> {
    const { from, to } = damage;
    const what = `ended in an incomplete write: ${to - from} bytes without a whole block`;
    try {
      const path = await setAside(this.#files.fs, this.#files.folder, file, { segment: this.#segment, ...damage });
      await file.truncate(from);
      await file.sync();
      this.#say(`${what} ${path === undefined ? "were zeros and were removed" : `are now in ${path}`}`);
      return from;
    } catch (error) {
      this.#say(`${what} stay in the file, because they cannot be moved: ${(error as Error).message}`);
      return to;
    }
  }

  async #setAside(file: SegmentFile, damage: Damage): Promise<string | undefined> {
    try {
      const path = await setAside(this.#files.fs, this.#files.folder, file, { segment: this.#segment, ...damage });
      return path && `a copy is in ${path}`;
    } catch (error) {
      return `they are only in the segment, because copying them failed: ${(error as Error).message}`;
    }
  }

  #say(what: string): void {
    this.#notice(`${nameOf(this.#segment)} ${what}`);
  }
}

interface SectionEnd {
  readonly segment: number;
  /** Offset after the section. */
  readonly end: number;
  /** See `Salvaged`. */
  readonly certain: boolean;
}

function applySection(
  { overlay, rebuilding }: ReplayOptions,
  found: FoundSection,
  { segment, end: offset, certain }: SectionEnd,
): void {
  const end = positionAt(segment, offset);
  const statements = readRecord(found);
  if (statements === undefined) {
    const { form, headLength: head, length, offset } = found;
    const old = overlay.find(found.multihash);
    const forms = old?.forms.includes(form) ? old.forms : [...(old?.forms ?? []), form];
    // A view would retain a much larger array.
    overlay.set(
      ownBytes(found.multihash),
      old,
      { forms, location: { segment, offset, length, headLength: head } },
      end,
    );
    return;
  }
  overlay.addRecord(
    found.headLength + found.length,
    statements.every(({ forms }) => forms.length === 0),
    end,
  );
  for (const statement of statements) applyStatement(overlay, statement, { end, certain, rebuilding });
}

/** Applies a statement. An uncertain one removes nothing. */
function applyStatement(
  overlay: IndexOverlay,
  { multihash, forms: said }: Statement,
  { end, certain, rebuilding }: { end: number; certain: boolean; rebuilding: boolean },
): void {
  const old = overlay.find(multihash);
  if (said.length === 0) {
    if (old !== undefined && certain) overlay.set(multihash, old, undefined, end);
  } else if (old !== undefined || rebuilding) {
    const forms = certain ? said : [...new Set([...(old?.forms ?? []), ...said])];
    // During a rebuild, the bytes may follow in the segment that they were moved to.
    overlay.set(multihash, old, { forms, location: old?.location }, end);
  }
}
