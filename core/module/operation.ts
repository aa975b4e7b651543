import type { ModhostError } from "../util/errors.ts";

/** Receives the progress of an operation. */
export interface OperationProgress {
  /** Reports a completed step. */
  step(what: string): void;
  /**
   * Reports that the operation can no longer fail; old instances may still be finishing their
   * requests.
   */
  inForce(): void;
}

export const noProgress: OperationProgress = { step: () => undefined, inForce: () => undefined };

/** One load, with all the loads that it causes. */
export interface Operation {
  /** Names of the modules that wait for the one being loaded. */
  readonly chain: readonly string[];
  /** Errors of modules that have failed already: these are not tried again, nor reported twice. */
  readonly failed: Map<string, unknown>;
  /** Keys (`name@host`) of modules that it may bring back from quarantine. */
  readonly lifts: ReadonlySet<string>;
}

export function newOperation(begun: Partial<Operation> = {}): Operation {
  return { chain: [], failed: new Map(), lifts: new Set(), ...begun };
}

/** Returns true if the module is part of the cycle in the error. */
export function isPartOf(error: ModhostError, name: string): boolean {
  return Array.isArray(error.details.names) && error.details.names.includes(name);
}

/** Returns the module's name, with the host that the instance serves. */
export const labelOf = ({ name, host }: { readonly name: string; readonly host: string }): string =>
  host === "*" ? name : `${name} on ${host}`;
