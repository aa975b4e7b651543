/** Options of modules: declared once, read through the getters of the module object. */

/** The kinds of option values. `period` is seconds, or text such as "90s", "10m", "2h", "1d". */
export type OptionType =
  | "string"
  | "number"
  | "integer"
  | "boolean"
  | "period"
  | "path"
  | "enum"
  | "strings"
  | "ports"
  | "object"
  | "any";

/** One option, declared once: parsing, checks, the JSON Schema, the sample config and the reference come from it. */
export interface OptionDeclaration {
  readonly type: OptionType;
  /** Value when the option is not set; left out means "not set" (getters give undefined). */
  readonly default?: unknown;
  /** Inclusive bounds of numbers, integers and periods (seconds). */
  readonly min?: number;
  readonly max?: number;
  /** Allowed values of an enum. */
  readonly values?: readonly string[];
  /** Unit shown in the reference: "bytes", "seconds". */
  readonly unit?: string;
  /** A value for the commented sample, where there is no default that shows the form. */
  readonly example?: unknown;
  /** One sentence for operators. */
  readonly describe: string;
  /** May be set inside an entry of `hosts`, too. Default true. */
  readonly per_host?: boolean;
  /** Of an object whose values are objects themselves: their fields. A field without default must be set. */
  readonly entries?: OptionDeclarations;
}

export type OptionDeclarations = Readonly<Record<string, OptionDeclaration>>;
