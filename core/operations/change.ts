/** The record of a change while it is being made. */
import { readFile } from "node:fs/promises";
import type { Change, ChangeError, ChangeStep, ConfigPlan, SourcePlace } from "../types.ts";
import { type ErrorCode, ModhostError, reasonOf } from "../util/errors.ts";

/** Who asks for a change, and by which way. */
export interface Requester {
  readonly by: string;
  readonly via?: string | undefined;
}

export interface ChangeRequest extends Requester {
  readonly what: string;
}

/** How far a change has come, told by what makes it. */
export interface Progress {
  /** This has been done. */
  step(what: string): void;
  /** The change is in force, and can fail no more: what leaves still finishes its requests. */
  inForce(): void;
  /** This is what a changed configuration makes of the host. */
  planned(plan: ConfigPlan): void;
}

/** Nothing was tried: the request itself does not fit. */
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

/** Of a message, or a line of source: those of a module may be megabytes, and stay in memory and in the audit file. */
const MAX_TEXT_LENGTH = 8192;

let made = 0;

/** Ids sort by time, and differ between processes. */
function newId(): string {
  made += 1;
  return `${Date.now().toString(36)}-${process.pid.toString(36)}-${made.toString(36).padStart(4, "0")}`;
}

/** A change from the moment it is asked for. */
export class OpenChange {
  readonly #head: Pick<Change, "id" | "at" | "by" | "what"> & { readonly via?: string };
  readonly #began = performance.now();
  readonly #steps: ChangeStep[] = [];
  #plan: ConfigPlan | undefined;

  constructor({ what, by, via }: ChangeRequest) {
    const other = via === undefined || via === by ? {} : { via };
    this.#head = { id: newId(), at: new Date().toISOString(), by, ...other, what };
  }

  step(what: string): void {
    this.#steps.push({ what, ms: Math.round(performance.now() - this.#began) });
  }

  planned(plan: ConfigPlan): void {
    this.#plan = plan;
  }

  get #parts(): Omit<Change, "result"> {
    const plan = this.#plan === undefined ? {} : { plan: this.#plan };
    return { ...this.#head, steps: [...this.#steps], ...plan };
  }

  done(): Change {
    return { ...this.#parts, result: "done" };
  }

  /** `mask`: takes secrets out of texts. */
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
  const place = await placeOf(error, mask);
  return {
    ...(ModhostError.is(error) ? { code: error.code } : {}),
    message: shortened(mask(reasonOf(error))),
    ...(place === undefined ? {} : { place }),
  };
}

/** The place that a failed module has told, or one that it depends on; with the line itself. */
async function placeOf(thrown: unknown, mask: (text: string) => string): Promise<SourcePlace | undefined> {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    const { place } = ModhostError.is(error) ? (error.details as { place?: Omit<SourcePlace, "text"> }) : {};
    if (place === undefined) continue;
    const text = await lineOf(place);
    return { ...place, ...(text === undefined ? {} : { text: shortened(mask(text)) }) };
  }
  return undefined;
}

async function lineOf({ file, line }: Omit<SourcePlace, "text">): Promise<string | undefined> {
  const lines = await readFile(file, "utf8").then(
    (text) => text.split("\n"),
    () => [],
  );
  return lines[line - 1]?.trimEnd();
}
