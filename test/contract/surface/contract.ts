/** `test/fixtures/surface.json`: the endpoints of the contract as data, and what the reference's command line names. */
import { readFileSync } from "node:fs";

/** A type, `{field: type}`, `[type]`, or `{"<string>": type}` for a map. */
export type Form = string | readonly [Form] | { readonly [field: string]: Form };

export interface Parameter {
  readonly name: string;
  /** Of `arg`: its place, from 1. */
  readonly at?: number;
  readonly type: string;
  readonly required?: boolean;
  readonly repeatable?: boolean;
  readonly experimental?: boolean;
  readonly deprecated?: boolean;
  readonly default?: boolean | number | string | readonly string[];
}

export interface Endpoint {
  readonly parameters: readonly Parameter[];
  readonly body?: { readonly name?: string; readonly many?: boolean };
  readonly stream?: boolean;
  readonly deprecated?: boolean;
  readonly returns: Form;
}

/** Arguments as the reference's help writes them, `[<path>]...`; names of each option, the long one first. */
export interface ReferenceCommand {
  readonly arguments: readonly string[];
  readonly options: readonly (readonly string[])[];
}

export interface Surface {
  readonly endpoints: Readonly<Record<string, Endpoint>>;
  readonly reference: Readonly<Record<string, ReferenceCommand>>;
}

export function readSurface(): Surface {
  return JSON.parse(readFileSync(new URL("../../fixtures/surface.json", import.meta.url), "utf8"));
}
