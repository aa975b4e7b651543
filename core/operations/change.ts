/** The record of a change in progress. */
import { readFile } from "node:fs/promises";
import type { Change, ChangeError, ChangeStep, ConfigPlan, SourcePosition } from "../types.ts";
import { type ErrorCode, ModhostError, reasonOf } from "../util/errors.ts";

/** The requester of a change, and the module that passes the request on. */
export interface Requester {
  readonly by: string;
  readonly via?: string | undefined;
}

export interface ChangeRequest extends Requester {
  readonly what: string;
}

/** Receives the progress of a change from the code that makes it. */
export interface Progress {
  /** Reports a completed step. */
  step(what: string): void;
  /**
   * Reports that the change is in force and can no longer fail; old instances may still be
   * finishing their requests.
   */
  inForce(): void;
  /** Adds a warning for the operator. */
  warn(text: string): void;
  /** Reports the plan of a changed configuration. */
  planned(plan: ConfigPlan): void;
}

/** Errors of requests that were refused before anything was tried. */
const refusals: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "CHANGE_REFUSED",
  "CONFIG_CHANGED",
  "CONFIG_FIXED",
  "CONFIG_INVALID",
  "CONFIG_NOT_EDITABLE",
  "CONFIG_NOT_FOUND",
  "CONFIG_UNREADABLE",
  "OPTION_INVALID",
  "MODULE_ALREADY_LOADED",
  "MODULE_DISABLED",
  "MODULE_NOT_FOUND",
  "MODULE_NOT_LOADED",
  "NOT_HANDED_OVER",
  "TOKEN_EXISTS",
  "TOKEN_INVALID",
  "TOKEN_UNKNOWN",
  "UNKNOWN_HOST",
]);

/**
 * Maximum length of a message or a source line: texts of modules may be megabytes, and stay in
 * memory and in the audit file.
 */
const MAX_TEXT_LENGTH = 8192;

let made = 0;

/** Returns an id. Ids sort by time, and differ between processes. */
function newId(): string {
  made += 1;
  return `${Date.now().toString(36)}-${process.pid.toString(36)}-${made.toString(36).padStart(4, "0")}`;
}

/** A change, from its request on. */
export class OpenChange {
  readonly #head: Pick<Change, "id" | "at" | "by" | "what"> & { readonly via?: string };
  readonly #began = performance.now();
  readonly #steps: ChangeStep[] = [];
  readonly #warnings: string[] = [];
  #plan: ConfigPlan | undefined;

  constructor({ what, by, via }: ChangeRequest) {
    const other = via === undefined || via === by ? {} : { via };
    this.#head = { id: newId(), at: new Date().toISOString(), by, ...other, what };
  }

  step(what: string): void {
    this.#steps.push({ what, ms: Math.round(performance.now() - this.#began) });
  }

  warn(text: string): void {
    this.#warnings.push(text);
  }

  planned(plan: ConfigPlan): void {
    this.#plan = plan;
  }

  get #parts(): Omit<Change, "result"> {
    const plan = this.#plan === undefined ? {} : { plan: this.#plan };
    return { ...this.#head, steps: [...this.#steps], ...plan };
  }

  done(): Change {
    const warnings = this.#warnings.length === 0 ? {} : { warnings: [...this.#warnings] };
    return { ...this.#parts, result: "done", ...warnings };
  }

  /** `mask` removes secrets from texts. */
  async failed(error: unknown, mask: (text: string) => string): Promise<Change> {
    const isRefused = ModhostError.is(error) && refusals.has(error.code);
    const record = { ...this.#parts, error: await errorOf(error, mask) };
    return { ...record, result: isRefused ? "refused" : "failed" };
  }
}

function shortened(text: string): string {
  if (text.length <= MAX_TEXT_LENGTH) return text;
  return `${text.slice(0, MAX_TEXT_LENGTH)}... (${text.length} characters)`;
}

async function errorOf(error: unknown, mask: (text: string) => string): Promise<ChangeError> {
  const position = await positionOf(error, mask);
  return {
    ...(ModhostError.is(error) ? { code: error.code } : {}),
    message: shortened(mask(reasonOf(error))),
    ...(position === undefined ? {} : { place: position }),
  };
}

/**
 * Returns the position in the source that the error of a failed module names, or that of one it
 * depends on, with the text of the line.
 */
async function positionOf(thrown: unknown, mask: (text: string) => string): Promise<SourcePosition | undefined> {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    const details = ModhostError.is(error) ? (error.details as { place?: Omit<SourcePosition, "text"> }) : {};
    const position = details.place;
    if (position === undefined) continue;
    const text = await lineOf(position);
    return { ...position, ...(text === undefined ? {} : { text: shortened(mask(text)) }) };
  }
  return undefined;
}

async function lineOf({ file, line }: Omit<SourcePosition, "text">): Promise<string | undefined> {
  const lines = await readFile(file, "utf8").then(
    (text) => text.split("\n"),
    () => [],
  );
  return lines[line - 1]?.trimEnd();
}
