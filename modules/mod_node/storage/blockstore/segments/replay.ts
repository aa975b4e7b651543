/** Brings what a segment says into the index, and sets aside what in it is damaged. */

import { hashCoded } from "../../../formats/cid/hashes.ts";
import { ownBytes } from "../../../util/own_bytes.ts";
import { sizeText } from "../../../util/size.ts";
import type { SegmentFile, SegmentFiles } from "./files.ts";
import { cidOf, isRecord, nameOf, positionAt, readRecord, type Statement, segmentHeader } from "./format.ts";
import type { IndexOverlay } from "./index_overlay.ts";
import { setAside } from "./lost_and_found.ts";
import { type Damage, salvage } from "./salvage.ts";
import { type FoundSection, SectionReader } from "./section_reader.ts";

/** Called with a sentence about something that had to be repaired. */
export type Notice = (text: string) => void;

export interface ReplayOptions {
  readonly overlay: IndexOverlay;
  /** The last segment, the only one that can end in an unfinished write: earlier ones were durable when it began. */
  readonly last: boolean;
  readonly rebuilding: boolean;
  readonly notice: Notice;
}

/**
 * Brings the statements of a segment from an offset on into the overlay; gives the length of the file. Sections of the last segment are checked
 * against their CIDs; of the others the lengths only, unless those do not fit together or a record speaks of other blocks:
 * with a wrong length, it may lie inside of a block that holds an archive itself. Damaged ranges are copied to
 * `lost+found` and stay in the file, except for the end of the last segment: there the log goes on.
 */
export function replay(files: SegmentFiles, segment: number, from: number, options: ReplayOptions): Promise<number> {
  const { overlay, last } = options;
  return files.use(segment, async (file) => {
    const size = await file.size();
    if (size < segmentHeader.length) {
      if (last) await files.begin(segment);
      return segmentHeader.length;
    }
    // What is read here will be in the index, so it must be durable first.
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
      if (each.mended) aside.mended(each.found);
      await apply(each.found, each.end, each.certain);
    }
    return size;
  });
}

/**
 * Whether the lengths of all sections lead from one to the next, up to the end, and all are blocks that have a hash of a
 * known kind.
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

/** Sets damage aside, and says so. */
class Aside {
  readonly #files: SegmentFiles;
  readonly #segment: number;
  readonly #notice: Notice;

  constructor(files: SegmentFiles, segment: number, notice: Notice) {
    this.#files = files;
    this.#segment = segment;
    this.#notice = notice;
  }

  mended({ offset, length, headLength }: FoundSection): void {
    const at = offset - headLength;
    this.#say(`is damaged at byte ${at}: the length there is wrong; its block of ${length} bytes was found by its CID`);
  }

  async keep(file: SegmentFile, damage: Damage): Promise<void> {
    const { from, to, reason } = damage;
    const what = `is damaged from byte ${from} to ${to} (${reason}), ${sizeText(to - from)} without a block`;
    const place = await this.#setAside(file, damage);
    this.#say(`${what}: ${place ?? "zeros only"}; blocks behind it are read on`);
  }

  /** Cuts off the end, once it is kept elsewhere; gives where the log goes on. */
  async end(file: SegmentFile, damage: Damage): Promise<number> {
    const { from, to } = damage;
    const what = `ended in a write that was not finished: ${to - from} bytes without a whole block`;
    try {
      const place = await setAside(this.#files.fs, this.#files.folder, file, { segment: this.#segment, ...damage });
      await file.truncate(from);
      await file.sync();
      this.#say(`${what} ${place === undefined ? "were zeros and are cut off" : `are now in ${place}`}`);
      return from;
    } catch (error) {
      this.#say(`${what} stay where they are, since they cannot be moved: ${(error as Error).message}`);
      return to;
    }
  }

  async #setAside(file: SegmentFile, damage: Damage): Promise<string | undefined> {
    try {
      const place = await setAside(this.#files.fs, this.#files.folder, file, { segment: this.#segment, ...damage });
      return place && `a copy is in ${place}`;
    } catch (error) {
      return `they stay there alone, since no copy can be made: ${(error as Error).message}`;
    }
  }

  #say(what: string): void {
    this.#notice(`${nameOf(this.#segment)} ${what}`);
  }
}

interface Place {
  readonly segment: number;
  /** Offset behind the section. */
  readonly end: number;
  /** See `Salvaged`. */
  readonly certain: boolean;
}

function applySection(
  { overlay, rebuilding }: ReplayOptions,
  found: FoundSection,
  { segment, end: offset, certain }: Place,
): void {
  const end = positionAt(segment, offset);
  const statements = readRecord(found);
  if (statements === undefined) {
    const { form, headLength: head, length, offset } = found;
    const old = overlay.find(found.multihash);
    const forms = old?.forms.includes(form) ? old.forms : [...(old?.forms ?? []), form];
    // A copy: the view would keep much more alive.
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

/** A statement that is not certain removes nothing. */
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
    // In a rebuild the bytes may come later, from the segment that they were moved to.
    overlay.set(multihash, old, { forms, location: old?.location }, end);
  }
}
