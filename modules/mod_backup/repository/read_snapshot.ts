/** Parses snapshots defensively: anyone who can write to the backend may have changed them. */
import valid from "semver/functions/valid.js";
import { printable } from "../../../core/net/http.ts";
import { FORMAT, leadsOut, type Snapshot, type SnapshotFolder } from "./format.ts";

type Unchecked<T> = { readonly [Name in keyof T]?: unknown };

/**
 * Returns undefined for a text that no backup would write. Fields of later versions are kept
 * unchanged. Texts contain no terminal control characters, and paths and options have a safe form,
 * because a restore prints a command that contains them.
 */
export function readSnapshot(text: string): Snapshot | undefined {
  const found = parsed(text) as Unchecked<Snapshot> | undefined;
  if (typeof found?.format !== "number") return undefined;
  if (found.format > FORMAT) return found as Snapshot;
  const { time, version, machine, config, folders, notes, files, bytes, added, list } = found;
  const isWhole =
    isText(time) &&
    isText(machine) &&
    isText(version) &&
    valid(version) !== null &&
    (config === undefined || isPath(config)) &&
    isListOf(folders, isFolder) &&
    isListOf(notes, isText) &&
    [files, bytes, added].every((count) => Number.isSafeInteger(count) && (count as number) >= 0) &&
    isListOf(list, Array.isArray);
  if (!isWhole) return undefined;
  return { ...(found as Snapshot), machine: printable(machine), notes: notes.map(printable) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isText = (value: unknown): value is string => typeof value === "string";
const isPath = (value: unknown): value is string => isText(value) && !leadsOut(value) && printable(value) === value;

function isListOf<T>(value: unknown, isOne: (one: unknown) => one is T): value is T[] {
  return Array.isArray(value) && value.every(isOne);
}

function isFolder(value: unknown): value is SnapshotFolder {
  const { name, was, to, option } = (value ?? {}) as Unchecked<SnapshotFolder>;
  return (
    isText(name) && isText(was) && isPath(to) && (option === undefined || (isText(option) && /^\w+$/.test(option)))
  );
}
