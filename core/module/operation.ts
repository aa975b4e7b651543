import type { ModhostError } from "../util/errors.ts";

/** Hears how far an operation has come. */
export interface OperationProgress {
  /** This has been done. */
  step(what: string): void;
  /** It can fail no more: what leaves still finishes its requests. */
  inForce(): void;
}

export const unheard: OperationProgress = { step: () => undefined, inForce: () => undefined };

/** One load, with all the loads that it leads to. */
export interface Operation {
  /** Names of the modules that wait for the one being loaded. */
  readonly chain: readonly string[];
  /** What has failed already: it is not tried again, nor reported twice. */
  readonly failed: Map<string, unknown>;
  /** What it may bring back from quarantine: `name@host`. */
  readonly lifts: ReadonlySet<string>;
}

export function newOperation(begun: Partial<Operation> = {}): Operation {
  return { chain: [], failed: new Map(), lifts: new Set(), ...begun };
}

/** Is the module part of the cycle that the error tells of? */
export function isPartOf(error: ModhostError, name: string): boolean {
  return Array.isArray(error.details.names) && error.details.names.includes(name);
}

/** The module's name, with the host that the instance serves. */
export const labelOf = ({ name, host }: { readonly name: string; readonly host: string }): string =>
  host === "*" ? name : `${name} on ${host}`;
