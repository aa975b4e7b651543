/** Options of modules: declared once, read with the getters of the module object. */

/**
 * The types of option values. `period` is seconds, or text such as "90s", "10m", "2h", "1d"; `size`
 * is bytes, or text such as "10MB" or "1GiB"; `url` is an absolute URL of HTTP or HTTPS; `port` is
 * one port, and `ports` is a list of them.
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
  | "port"
  | "ports"
  | "object"
  | "any";

/**
 * The declaration of one option: parsing, checks, the JSON Schema, the sample config and the
 * reference are derived from it.
 */
export interface OptionDeclaration {
  /** The kind of its values. */
  readonly type: OptionType;
  /** The value if the option is not set. Without a default, getters return undefined then. */
  readonly default?: unknown;
  /** Minimum of numbers, integers, periods (seconds) and sizes (bytes). */
  readonly min?: number;
  /** Maximum of the same types. */
  readonly max?: number;
  /** Allowed values of an enum. */
  readonly values?: readonly string[];
  /** Unit shown in the reference: "bytes", "seconds". */
  readonly unit?: string;
  /**
   * A value for the commented sample and for messages about wrong values, if no default shows the
   * form.
   */
  readonly example?: unknown;
  /** One sentence for operators. */
  readonly describe: string;
  /** Whether it may be set inside an entry of `hosts`, too. Default true. */
  readonly per_host?: boolean;
  /**
   * Whether the module fails to load with an error when this option is not set; such an option has
   * no default.
   */
  readonly required?: boolean;
  /**
   * Whether the value is hidden everywhere: in messages about wrong values and in all log lines.
   * "keys": the secrets are the items of a list, or the field names of an object.
   */
  readonly secret?: boolean | "keys";
  /**
   * How a change takes effect while the server runs. Without it, the modules that have read the
   * option are reloaded. "live": modules that can handle the change keep running; these are the
   * module that declares it, and others that have `module.changed`. "start": the change takes
   * effect at the next start.
   */
  readonly applies?: "live" | "start";
  /**
   * Whether the option controls access. An unknown name that nearly equals this one prevents the
   * start instead of causing a warning, because the server would run without that protection. With
   * `keys: "apps"` the option protects apps of other modules: give it the name of its module. The
   * host then does not start with the option and without the module, and an unload of the module
   * names the apps that it leaves open.
   */
  readonly protects?: boolean;
  /**
   * For a path, or texts that are paths: nothing creates a missing file or folder, so
   * `modhost check` warns about it.
   */
  readonly must_exist?: boolean;
  /**
   * For an object: its keys are names of apps, so `modhost check` warns about apps that no module
   * provides.
   */
  readonly keys?: "apps";
  /**
   * For an object whose values are objects: the fields of these. A field without default must be
   * set, unless it has `required: false`.
   */
  readonly entries?: OptionDeclarations;
  /** For an object: its own fields, by the same rules. */
  readonly fields?: OptionDeclarations;
}

/**
 * Declarations by option name. All modules share these names: start them with the name of your
 * module.
 */
export type OptionDeclarations = Readonly<Record<string, OptionDeclaration>>;

/**
 * The getters with which a module reads options. Each returns undefined if the option is not set
 * and has no default.
 */
export interface OptionGetters {
  /**
   * Returns an option with its declared type; the value of the host takes precedence over that of
   * the server. Undefined if it is not set and has no default.
   */
  get_option<T = unknown>(name: string, fallback?: T): T | undefined;
  /** Returns an option whose value is a text. */
  get_option_string(name: string, fallback?: string): string | undefined;
  /**
   * Returns a number from `min` to `max`. A value outside prevents the start, like a wrong value of
   * a declared option.
   */
  get_option_number(name: string, fallback?: number, min?: number, max?: number): number | undefined;
  /** A whole number from `min` to `max`. */
  get_option_integer(name: string, fallback?: number, min?: number, max?: number): number | undefined;
  /** True or false. */
  get_option_boolean(name: string, fallback?: boolean): boolean | undefined;
  /** Returns seconds; the config may contain "90s", "10m", "2h", "1d", and so may `fallback`. */
  get_option_period(name: string, fallback?: number | string, min?: number, max?: number): number | undefined;
  /** Returns bytes; the config may contain "10MB" or "1GiB", and so may `fallback`. */
  get_option_size(name: string, fallback?: number | string, min?: number, max?: number): number | undefined;
  /** Returns one of `values`. */
  get_option_enum<T extends string>(name: string, values: readonly T[], fallback?: T): T | undefined;
  /** Returns a list of strings; a single value becomes a list. */
  get_option_array(name: string, fallback?: readonly string[]): string[] | undefined;
  /** Returns a list of strings as a set; a single value becomes a set of one. */
  get_option_set(name: string, fallback?: readonly string[]): Set<string> | undefined;
  /** Returns a set with the items of the server's value and of this host's value. */
  get_option_inherited_set(name: string, fallback?: readonly string[]): Set<string> | undefined;
  /** Returns an object as it is written in the configuration. */
  get_option_object(name: string, fallback?: Record<string, unknown>): Record<string, unknown> | undefined;
  /**
   * Returns an absolute path. A relative path is resolved from the folder of the config file, a
   * relative fallback from that of the module.
   */
  get_option_path(name: string, fallback?: string): string | undefined;
}

/**
 * The getters with which a module reads the options `D` that it declares. `get_option` returns each
 * with its type. The other getters take the options that are declared with their type (or with
 * "any"); no other name compiles:
 * - `get_option_string`: "string", "enum", "path", "url"
 * - `get_option_number`: "number", "integer", "period", "size"; `get_option_integer`: "integer",
 *   "size"
 * - `get_option_boolean`: "boolean"
 * - `get_option_period`: "period", "number", "integer"; `get_option_size`: "size", "number",
 *   "integer"
 * - `get_option_enum`: "enum", "string"
 * - `get_option_array`, `get_option_set`, `get_option_inherited_set`: "strings"
 * - `get_option_object`: "object"
 * - `get_option_path`: "path" A result can be `undefined` only if no default is declared. Options
 * of other modules are read through a plain `Module`: `(module as Module).get_option("data_path")`.
 */
export interface DeclaredOptionGetters<D extends OptionDeclarations> {
  get_option<N extends keyof D & string>(name: N): OptionValue<D[N]>;
  // No name matches this form. It makes such a module object assignable wherever a `Module` is
  // expected.
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

/**
 * `undefined` for an option that may be omitted; `never` for one that has a default or is required.
 */
type Unset<O extends OptionDeclaration> = O extends
  | { readonly default: NonNullable<unknown> }
  | { readonly required: true }
  ? never
  : undefined;

/** `undefined` for a field of an entry that may be omitted. */
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
  /** A period of time in seconds. */
  period: number;
  /** A size in bytes. */
  size: number;
  url: string;
  /** An absolute path. */
  path: string;
  enum: string;
  strings: readonly string[];
  /** 0 means no port. */
  port: number;
  ports: readonly number[];
  object: Readonly<Record<string, unknown>>;
  any: unknown;
}
