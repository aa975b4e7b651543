/**
 * Adds metadata to that of a store which may have some of its own: what is the same in both, what
 * is joined, what is refused.
 */
import { mergePin, PIN_NAMES, type PinMode, pinPrefix } from "../../content/pins/pins.ts";
import { parseCid } from "../../formats/cid/text.ts";
import { nameOfPublished, PUBLISHED_PREFIX } from "../../network/ipns_record/keys.ts";
import { decodeRecord, type IpnsRecord } from "../../network/ipns_record/record.ts";
import type { MetadataStore, MetadataWriter } from "../../storage/metadata/store.ts";
import { batches } from "../../util/async/batches.ts";
import { seededKey } from "../seed.ts";
import { emptyDirectory } from "./source.ts";

/**
 * Where both have files, or the same name with another path: refuse, keep those of the target,
 * replace them.
 */
export type OnConflict = "refuse" | "keep" | "replace";

type Choice = "take" | "keep" | "conflict";

/**
 * A part of the metadata that goes with the content. All others are of one host, or of one kind of
 * store.
 */
interface Part {
  readonly prefix: string;
  /** For an entry of which the target has another value. */
  readonly choose: (value: Uint8Array, held: Uint8Array) => Choice;
  /** An entry in conflict, in words. */
  readonly tell: (key: string, value: Uint8Array, held: Uint8Array) => string;
}

const MODULES = "modules/";
/** Entries in one transaction. */
const MAX_BATCH = 2048;

const parts: readonly Part[] = [
  { prefix: PUBLISHED_PREFIX, choose: chooseRecord, tell: tellRecord },
  { prefix: MODULES, choose: () => "conflict", tell: (key) => `the entry ${key.slice(MODULES.length)} of a module` },
  { prefix: PIN_NAMES, choose: () => "keep", tell: (key) => key },
  // Roots that are to be provided: the value only repeats the key.
  { prefix: "routing/queue/", choose: () => "keep", tell: (key) => key },
  { prefix: seededKey, choose: () => "keep", tell: (key) => key },
];
const pinModes: readonly PinMode[] = ["recursive", "direct"];

export interface Merged {
  readonly pins: number;
  readonly names: number;
}

export interface MergeOptions {
  readonly onConflict: OnConflict;
  /** Called within each transaction, to throw what comes in the way. */
  readonly check?: () => void;
  readonly signal?: AbortSignal | undefined;
}

/** Entries of which each has another value, in words; not more than `most`. */
export async function metadataConflicts(from: MetadataStore, to: MetadataStore, most: number): Promise<string[]> {
  const found: string[] = [];
  for (const { prefix, choose, tell } of parts) {
    for await (const page of batches(from.range({ prefix }), MAX_BATCH)) {
      const there = await to.transaction((writer) => page.map(([key]) => writer.get(key)));
      for (const [at, [key, value]] of page.entries()) {
        const held = there[at];
        if (found.length === most) return found;
        if (held !== undefined && !isSame(value, held) && choose(value, held) === "conflict")
          found.push(tell(key, value, held));
      }
    }
  }
  return found;
}

/**
 * In several transactions: repeated, it does the same. Where both differ, `onConflict` decides;
 * `refuse` keeps what is there.
 */
export async function mergeMetadata(
  from: MetadataStore,
  to: MetadataStore,
  { onConflict, check = () => {}, signal }: MergeOptions,
): Promise<Merged> {
  const each = async (prefix: string, put: (writer: MetadataWriter, key: string, value: Uint8Array) => void) => {
    let entries = 0;
    for await (const page of batches(from.range({ prefix }), MAX_BATCH)) {
      signal?.throwIfAborted();
      await to.transaction((writer) => {
        check();
        for (const [key, value] of page) put(writer, key, value);
      });
      entries += page.length;
    }
    return entries;
  };
  let pins = 0;
  let names = 0;
  for (const mode of pinModes) {
    const prefix = pinPrefix(mode);
    pins += await each(prefix, (writer, key, value) =>
      mergePin(writer, parseCid(key.slice(prefix.length)), mode, value),
    );
  }
  for (const { prefix, choose } of parts) {
    const entries = await each(prefix, (writer, key, value) => {
      const held = writer.get(key);
      if (held === undefined || (!isSame(value, held) && isTaken(choose(value, held), onConflict)))
        writer.put(key, value);
    });
    if (prefix === PUBLISHED_PREFIX) names += entries;
  }
  return { pins, names };
}

/**
 * Whether all entries are there; gives the keys of those that are not. Values may have changed
 * since they were merged.
 */
export async function missingEntries(from: MetadataStore, to: MetadataStore): Promise<string[]> {
  const missing: string[] = [];
  for (const prefix of [...pinModes.map(pinPrefix), PUBLISHED_PREFIX]) {
    for await (const page of batches(from.range({ prefix }), MAX_BATCH)) {
      const there = await to.transaction((writer) => page.map(([key]) => writer.has(key) || isMoreThan(writer, key)));
      missing.push(...page.flatMap(([key], at) => (there[at] === true ? [] : [key])));
    }
  }
  return missing;
}

/** A direct pin may be a recursive one there. */
const isMoreThan = (writer: MetadataWriter, key: string): boolean =>
  key.startsWith(pinPrefix("direct")) && writer.has(pinPrefix("recursive") + key.slice(pinPrefix("direct").length));

const isTaken = (choice: Choice, onConflict: OnConflict): boolean =>
  choice === "take" || (choice === "conflict" && onConflict === "replace");

const isSame = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;

/**
 * A name has the later of two records of the same path. The one that every new repo publishes says
 * nothing.
 */
function chooseRecord(value: Uint8Array, held: Uint8Array): Choice {
  const ours = recordIn(value);
  const theirs = recordIn(held);
  if (ours === undefined) return "keep";
  if (theirs === undefined) return "take";
  if (isSame(ours.value, theirs.value)) return ours.sequence > theirs.sequence ? "take" : "keep";
  if (isOfNewRepo(theirs)) return "take";
  return isOfNewRepo(ours) ? "keep" : "conflict";
}

function tellRecord(key: string, value: Uint8Array, held: Uint8Array): string {
  const path = (bytes: Uint8Array) => Buffer.from(recordIn(bytes)?.value ?? []).toString();
  return `the name ${nameOfPublished(key)} is published for ${path(value)} and for ${path(held)}`;
}

/** The empty directory, under the first number. */
const isOfNewRepo = ({ value, sequence }: IpnsRecord): boolean =>
  sequence === 0n && Buffer.from(value).toString() === `/ipfs/${emptyDirectory}`;

function recordIn(bytes: Uint8Array): IpnsRecord | undefined {
  try {
    return decodeRecord(bytes);
  } catch {
    return undefined;
  }
}
