/** Options of modules: declared once, read through the getters of the module object. */

/**
 * The kinds of option values. `period` is seconds, or text such as "90s", "10m", "2h", "1d"; `size` is bytes, or text such
 * as "10MB" or "1GiB"; `url` is an absolute URL of HTTP or HTTPS.
 */
export type OptionType =
  | "string"
  | "number"
  | "integer"
  | "boolean"
  | "period"
  | "size"
  | "url"
  | "path"
  | "enum"
  | "strings"
  | "ports"
  | "object"
  | "any";

/** One option, declared once: parsing, checks, the JSON Schema, the sample config and the reference come from it. */
export interface OptionDeclaration {
  /** The kind of its values. */
  readonly type: OptionType;
  /** Value when the option is not set; left out means "not set" (getters give undefined). */
  readonly default?: unknown;
  /** Least value of numbers, integers, periods (seconds) and sizes (bytes). */
  readonly min?: number;
  /** Greatest value of the same. */
  readonly max?: number;
  /** Allowed values of an enum. */
  readonly values?: readonly string[];
  /** Unit shown in the reference: "bytes", "seconds". */
  readonly unit?: string;
  /** A value for the commented sample and for messages about wrong ones, where there is no default that shows the form. */
  readonly example?: unknown;
  /** One sentence for operators. */
  readonly describe: string;
  /** May be set inside an entry of `hosts`, too. Default true. */
  readonly per_host?: boolean;
  /** Without a value for it the module does not load, and says so; such an option has no default. */
  readonly required?: boolean;
  /**
   * Its value is shown nowhere: not in messages about wrong values, nor in lines of the log, whoever writes them. "keys":
   * the secrets are the items of a list or the names of an object's fields.
   */
  readonly secret?: boolean | "keys";
  /**
   * What becomes of a change while the server runs. Left out: the modules that have read the option are exchanged, as by
   * a reload. "live": nobody is exchanged who can hear of it, which is the module that declares it, and others that have
   * `module.changed`. "start": the value of the start stays until the next one.
   */
  readonly applies?: "live" | "start";
  /** Of a path, or of texts that are paths: nobody makes what is missing there, so `modhost check` warns of it. */
  readonly must_exist?: boolean;
  /** Of an object: its keys are names of apps, so `modhost check` warns of those that no module provides. */
  readonly keys?: "apps";
  /**
   * Of an object whose values are objects themselves: their fields. A field without default must be set, unless it says
   * `required: false`.
   */
  readonly entries?: OptionDeclarations;
  /** Of an object: its own fields, by the same rules. */
  readonly fields?: OptionDeclarations;
}

/** Option name to declaration. Names are shared by all modules: begin them with the name of yours. */
export type OptionDeclarations = Readonly<Record<string, OptionDeclaration>>;

/** How a module reads options. Each getter gives undefined when the option is not set and has no default. */
export interface OptionGetters {
  /** An option as declared, the host's own value before the server's. Undefined when not set and without default. */
  get_option<T = unknown>(name: string, fallback?: T): T | undefined;
  /** Text. */
  get_option_string(name: string, fallback?: string): string | undefined;
  /** A number from `min` to `max`. A value outside stops the start, as a wrong value of a declared option does. */
  get_option_number(name: string, fallback?: number, min?: number, max?: number): number | undefined;
  /** A whole number from `min` to `max`. */
  get_option_integer(name: string, fallback?: number, min?: number, max?: number): number | undefined;
  /** True or false. */
  get_option_boolean(name: string, fallback?: boolean): boolean | undefined;
  /** Seconds; the config may say "90s", "10m", "2h", "1d", and so may `fallback`. */
  get_option_period(name: string, fallback?: number | string, min?: number, max?: number): number | undefined;
  /** Bytes; the config may say "10MB" or "1GiB", and so may `fallback`. */
  get_option_size(name: string, fallback?: number | string, min?: number, max?: number): number | undefined;
  /** One of `values`. */
  get_option_enum<T extends string>(name: string, values: readonly T[], fallback?: T): T | undefined;
  /** A list of strings; a single value becomes a list. */
  get_option_array(name: string, fallback?: readonly string[]): string[] | undefined;
  /** The same as a set. */
  get_option_set(name: string, fallback?: readonly string[]): Set<string> | undefined;
  /** Set of the server joined with the set of this host. */
  get_option_inherited_set(name: string, fallback?: readonly string[]): Set<string> | undefined;
  /** An object, as it is written. */
  get_option_object(name: string, fallback?: Record<string, unknown>): Record<string, unknown> | undefined;
  /** An absolute path; a relative one counts from the config file's folder, a relative fallback from the module's. */
  get_option_path(name: string, fallback?: string): string | undefined;
}

/**
 * How a module reads the options `D` that it declares. `get_option` gives each by its type; the other getters take the
 * options that are declared with their type (or with "any"), and no other name compiles:
 * - `get_option_string`: "string", "enum", "path", "url"
 * - `get_option_number`: "number", "integer", "period", "size"; `get_option_integer`: "integer", "size"
 * - `get_option_boolean`: "boolean"
 * - `get_option_period`: "period", "number", "integer"; `get_option_size`: "size", "number", "integer"
 * - `get_option_enum`: "enum", "string"
 * - `get_option_array`, `get_option_set`, `get_option_inherited_set`: "strings"
 * - `get_option_object`: "object"
 * - `get_option_path`: "path"
 *
 * Undefined is among their results only where no default is declared. Options of others are read through a plain
 * `Module`: `(module as Module).get_option("data_path")`.
 */
export interface DeclaredOptionGetters<D extends OptionDeclarations> {
  get_option<N extends keyof D & string>(name: N): OptionValue<D[N]>;
  // No name fits here: by this form such a module object fits wherever a `Module` is taken.
  get_option<T>(name: never, fallback?: T): T | undefined;
  get_option_string<N extends OptionName<D, "string" | "enum" | "path" | "url">>(
    name: N,
    fallback?: string,
  ): string | Unset<D[N]>;
  get_option_number<N extends OptionName<D, "number" | "integer" | "period" | "size">>(
    name: N,
    fallback?: number,
    min?: number,
    max?: number,
  ): number | Unset<D[N]>;
  get_option_integer<N extends OptionName<D, "integer" | "size">>(
    name: N,
    fallback?: number,
    min?: number,
    max?: number,
  ): number | Unset<D[N]>;
  get_option_boolean<N extends OptionName<D, "boolean">>(name: N, fallback?: boolean): boolean | Unset<D[N]>;
  get_option_period<N extends OptionName<D, "period" | "number" | "integer">>(
    name: N,
    fallback?: number | string,
    min?: number,
    max?: number,
  ): number | Unset<D[N]>;
  get_option_size<N extends OptionName<D, "size" | "number" | "integer">>(
    name: N,
    fallback?: number | string,
    min?: number,
    max?: number,
  ): number | Unset<D[N]>;
  get_option_enum<T extends string>(
    name: OptionName<D, "enum" | "string">,
    values: readonly T[],
    fallback?: T,
  ): T | undefined;
  get_option_array<N extends OptionName<D, "strings">>(name: N, fallback?: readonly string[]): string[] | Unset<D[N]>;
  get_option_set<N extends OptionName<D, "strings">>(name: N, fallback?: readonly string[]): Set<string> | Unset<D[N]>;
  get_option_inherited_set<N extends OptionName<D, "strings">>(
    name: N,
    fallback?: readonly string[],
  ): Set<string> | Unset<D[N]>;
  get_option_object<N extends OptionName<D, "object">>(
    name: N,
    fallback?: Record<string, unknown>,
  ): Record<string, unknown> | Unset<D[N]>;
  get_option_path<N extends OptionName<D, "path">>(name: N, fallback?: string): string | Unset<D[N]>;
}

/** The names of the options declared with one of the types `T`, or with "any". */
type OptionName<D extends OptionDeclarations, T extends OptionType> = {
  [N in keyof D & string]: D[N]["type"] extends T | "any" ? N : never;
}[keyof D & string];

/** The value of an option as it is declared. */
export type OptionValue<O extends OptionDeclaration> = ValueOf<O> | Unset<O>;

/** `undefined` for an option that may be left out; nothing for one that has a default or is required. */
type Unset<O extends OptionDeclaration> = O extends
  | { readonly default: NonNullable<unknown> }
  | { readonly required: true }
  ? never
  : undefined;

/** `undefined` for a field of an entry that may be left out. */
type Omitted<O extends OptionDeclaration> = O extends { readonly required: false } ? undefined : never;

type ValueOf<O extends OptionDeclaration> = O extends { readonly type: "enum"; readonly values: readonly (infer V)[] }
  ? V
  : O extends { readonly type: "object"; readonly entries: infer E extends OptionDeclarations }
    ? Readonly<Record<string, FieldsOf<E>>>
    : O extends { readonly type: "object"; readonly fields: infer F extends OptionDeclarations }
      ? FieldsOf<F>
      : OptionValues[O["type"]];

/** The fields of an object, as they are read. */
export type FieldsOf<F extends OptionDeclarations> = { readonly [N in keyof F]: ValueOf<F[N]> | Omitted<F[N]> };

/** The values of each option type, as they are read. */
export interface OptionValues {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  /** Seconds. */
  period: number;
  /** Bytes. */
  size: number;
  url: string;
  /** Absolute. */
  path: string;
  enum: string;
  strings: readonly string[];
  ports: readonly number[];
  object: Readonly<Record<string, unknown>>;
  any: unknown;
}
