/** Merges metadata into a store that may have some of its own. */
import { mergePin, PIN_NAMES, type PinMode, pinPrefix } from "../../content/pins/pins.ts";
import { parseCid } from "../../formats/cid/text.ts";
import { nameOfPublished, PUBLISHED_PREFIX } from "../../network/ipns_record/keys.ts";
import { decodeRecord, type IpnsRecord } from "../../network/ipns_record/record.ts";
import type { MetadataStore, MetadataWriter } from "../../storage/metadata/store.ts";
import { batches } from "../../util/async/batches.ts";
import { seededKey } from "../seed.ts";
import { emptyDirectory } from "./source.ts";

/**
 * How to resolve conflicts, which are different files, or different paths of the same name: fail,
 * keep the target's, or replace them.
 */
export type OnConflict = "refuse" | "keep" | "replace";

type Choice = "take" | "keep" | "conflict";

/**
 * A part of the metadata that is copied with the content. All other metadata belongs to one host or
 * to one kind of store.
 */
interface Part {
  readonly prefix: string;
  /** Decides about an entry for which the target has another value. */
  readonly choose: (value: Uint8Array, existing: Uint8Array) => Choice;
  /** Describes an entry in conflict. */
  readonly describe: (key: string, value: Uint8Array, existing: Uint8Array) => string;
}

const MODULES = "modules/";
/** Entries per transaction. */
const MAX_BATCH = 2048;

const parts: readonly Part[] = [
  { prefix: PUBLISHED_PREFIX, choose: chooseRecord, describe: describeConflict },
  {
    prefix: MODULES,
    choose: () => "conflict",
    describe: (key) => `the entry ${key.slice(MODULES.length)} of a module`,
  },
  { prefix: PIN_NAMES, choose: () => "keep", describe: (key) => key },
  // Roots to provide; the value only repeats the key.
  { prefix: "routing/queue/", choose: () => "keep", describe: (key) => key },
  { prefix: seededKey, choose: () => "keep", describe: (key) => key },
];
const pinModes: readonly PinMode[] = ["recursive", "direct"];

export interface Merged {
  readonly pins: number;
  readonly names: number;
}

export interface MergeOptions {
  readonly onConflict: OnConflict;
  /** Called within each transaction; throws to stop the merge. */
  readonly check?: () => void;
  readonly signal?: AbortSignal | undefined;
}

/** Returns descriptions of at most `most` entries that have different values in both stores. */
export async function metadataConflicts(from: MetadataStore, to: MetadataStore, most: number): Promise<string[]> {
  const found: string[] = [];
  for (const { prefix, choose, describe } of parts) {
    for await (const page of batches(from.range({ prefix }), MAX_BATCH)) {
      const there = await to.transaction((writer) => page.map(([key]) => writer.get(key)));
      for (const [at, [key, value]] of page.entries()) {
        const existing = there[at];
        if (found.length === most) return found;
        if (existing !== undefined && !isSame(value, existing) && choose(value, existing) === "conflict")
          found.push(describe(key, value, existing));
      }
    }
  }
  return found;
}

/**
 * Merges in several transactions; running it again has no further effect. If both values differ,
 * `onConflict` decides; `refuse` keeps the target's.
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
      const existing = writer.get(key);
      if (existing === undefined || (!isSame(value, existing) && isTaken(choose(value, existing), onConflict)))
        writer.put(key, value);
    });
    if (prefix === PUBLISHED_PREFIX) names += entries;
  }
  return { pins, names };
}

/**
 * Returns the keys that `to` lacks. It ignores values, because they may have changed since the
 * merge.
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

/** A direct pin counts as present if the target has a recursive one. */
const isMoreThan = (writer: MetadataWriter, key: string): boolean =>
  key.startsWith(pinPrefix("direct")) && writer.has(pinPrefix("recursive") + key.slice(pinPrefix("direct").length));

const isTaken = (choice: Choice, onConflict: OnConflict): boolean =>
  choice === "take" || (choice === "conflict" && onConflict === "replace");

const isSame = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;

/**
 * Prefers the later of two records with the same path. The record that every new repo publishes
 * counts least.
 */
function chooseRecord(value: Uint8Array, existing: Uint8Array): Choice {
  const ours = recordIn(value);
  const theirs = recordIn(existing);
  if (ours === undefined) return "keep";
  if (theirs === undefined) return "take";
  if (isSame(ours.value, theirs.value)) return ours.sequence > theirs.sequence ? "take" : "keep";
  if (isOfNewRepo(theirs)) return "take";
  return isOfNewRepo(ours) ? "keep" : "conflict";
}

function describeConflict(key: string, value: Uint8Array, existing: Uint8Array): string {
  const path = (bytes: Uint8Array) => Buffer.from(recordIn(bytes)?.value ?? []).toString();
  return `the name ${nameOfPublished(key)} is published for ${path(value)} and for ${path(existing)}`;
}

/** Whether it is the first record of a new repo: the empty directory with sequence number 0. */
const isOfNewRepo = ({ value, sequence }: IpnsRecord): boolean =>
  sequence === 0n && Buffer.from(value).toString() === `/ipfs/${emptyDirectory}`;

function recordIn(bytes: Uint8Array): IpnsRecord | undefined {
  try {
    return decodeRecord(bytes);
  } catch {
    return undefined;
  }
}
