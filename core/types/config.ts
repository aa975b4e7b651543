/** The configuration of a running server, for people who inspect and edit it. */
import type { Change } from "./change.ts";
import type { ConfigPlan } from "./plan.ts";

/** The type of `module.server.config`. */
export interface ServerConfig {
  /**
   * Returns every option that is declared or set, by name, with its current value and where that
   * comes from.
   */
  options(): readonly OptionState[];
  /** Reads the config file. The text contains secrets. */
  file(): Promise<ConfigFile>;
  /**
   * Reports what would change if the config file had this text; it changes nothing. Modules that
   * the text adds are evaluated for it.
   */
  check(text: string): Promise<ConfigCheck>;
  /**
   * Writes the config file and applies it, completely or not at all: if either step fails, the file
   * gets its previous text back. `etag` is the one of the text that was edited: if the file has
   * changed since, the change is refused. The file keeps its mode, and the previous texts are saved
   * next to it (`modhost.config.yaml.1`, `.2`, `.3`).
   */
  save(text: string, etag: string, options?: { readonly by?: string | undefined }): Promise<Change>;
}

/**
 * The type of `module.server.installed`: the file `modules.lock` in the folder of the config file,
 * which names the modules that were installed. The host loads them from folders below `data_path`.
 */
export interface ServerInstalled {
  /** Reads the file. If there is none, `text` is undefined, and the etag is that of no file. */
  file(): Promise<ConfigFile>;
  /**
   * Reports what would change if the file had this text; it changes nothing. Modules that the text
   * adds are evaluated for it.
   */
  check(text: string): Promise<ConfigCheck>;
  /**
   * Writes the file and applies it, completely or not at all, as `config.save` does with the config
   * file. `what` describes the change in its record: "install shop 1.2.0".
   */
  save(
    text: string,
    etag: string,
    options?: { readonly by?: string | undefined; readonly what?: string | undefined },
  ): Promise<Change>;
}

/**
 * Where the value of an option comes from: a file, an environment variable, the command line or a
 * program, the default, or nowhere.
 */
export type OptionSource = "file" | "environment" | "caller" | "default" | "unset";

/** The value of an option and its source; secrets are shown as `(secret)`. */
export interface OptionValueState {
  /**
   * JSON text on one line. Undefined if the option is not set, and for a name that no module
   * declares, because that could be a secret.
   */
  readonly value?: string | undefined;
  readonly source: OptionSource;
  /** A new value waits for the next start; `value` is the current one. */
  readonly is_waiting?: true;
}

/** An option with its current value. */
export interface OptionState extends OptionValueState {
  readonly name: string;
  /**
   * The module that declares it, "core" for the host; undefined for a name that no module declares.
   */
  readonly owner?: string | undefined;
  readonly type?: string | undefined;
  readonly describe?: string | undefined;
  /** The default value as JSON text. */
  readonly default?: string | undefined;
  readonly values?: readonly string[] | undefined;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  readonly unit?: string | undefined;
  readonly is_secret: boolean;
  /** Whether it may be set inside an entry of `hosts`, too. */
  readonly is_per_host: boolean;
  /** `start`: a change takes effect at the next start. */
  readonly applies: "now" | "start";
  /** The environment variable that sets it. */
  readonly variable: string;
  /** Hosts with a value of their own. */
  readonly hosts: readonly (OptionValueState & { readonly host: string })[];
}

/** The config file with its secrets. */
export interface ConfigFile {
  /** Undefined if the server was started without a file. */
  readonly path?: string | undefined;
  readonly format?: "yaml" | "json" | "script" | undefined;
  readonly text?: string | undefined;
  /** Identifies this text: pass it back when you save a new text. */
  readonly etag?: string | undefined;
  readonly is_editable: boolean;
  /** Why the file is not editable. */
  readonly reason?: string | undefined;
}

/** A problem in a text of the configuration. */
export interface ConfigFault {
  readonly message: string;
  /** The option, such as `http_ports` or `hosts.www.example.org.notes_folder`. */
  readonly path?: string | undefined;
  /** Number of the line in the text, from 1. */
  readonly line?: number | undefined;
  /** Number of the column, from 1. */
  readonly column?: number | undefined;
}

/** The effect that a text would have if it were saved. */
export interface ConfigCheck {
  readonly faults: readonly ConfigFault[];
  /** Settings that can be applied but are probably mistakes: options that nothing reads. */
  readonly warnings: readonly ConfigFault[];
  /** Undefined if the text has faults. */
  readonly plan?: ConfigPlan | undefined;
}
