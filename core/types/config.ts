/** The configuration of a running server, as it is shown and edited. */
import type { Change } from "./change.ts";
import type { ConfigPlan } from "./plan.ts";

/** `module.server.config`. */
export interface ServerConfig {
  /** Every option that is declared or set, with the value in force and its source, by name. */
  options(): readonly OptionState[];
  /** The config file. What it gives has secrets in it. */
  file(): Promise<ConfigFile>;
  /** What this text in place of the file's would do; nothing is changed. Modules that it adds are evaluated for it. */
  check(text: string): Promise<ConfigCheck>;
  /**
   * Writes the config file and applies it, as a whole or not at all: where either fails, the file is what it was. `etag`
   * is that of the text that was edited: when the file has another one by now, the change is refused. Its mode stays, and
   * the former text is kept beside it (`modhost.config.yaml.1`, `.2`, `.3`).
   */
  save(text: string, etag: string, options?: { readonly by?: string | undefined }): Promise<Change>;
}

/** Where the value of an option comes from: a file, a variable of the environment, the command line or a program, nobody. */
export type OptionSource = "file" | "environment" | "caller" | "default" | "unset";

/** A value of an option, and its source; secrets are shown as `(secret)`. */
export interface OptionValueState {
  /** As JSON text on one line; undefined where it is not set, and for a name that nobody declares: it may be a secret. */
  readonly value?: string | undefined;
  readonly source: OptionSource;
  /** It waits for the next start; the value is the one in force. */
  readonly is_waiting?: true;
}

/** An option, with the value that is in force. */
export interface OptionState extends OptionValueState {
  readonly name: string;
  /** The module that declares it, "core" for the host; undefined for a name that nobody declares. */
  readonly owner?: string | undefined;
  readonly type?: string | undefined;
  readonly describe?: string | undefined;
  /** As JSON text. */
  readonly default?: string | undefined;
  readonly values?: readonly string[] | undefined;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  readonly unit?: string | undefined;
  readonly is_secret: boolean;
  /** It may be set inside an entry of `hosts`, too. */
  readonly is_per_host: boolean;
  /** `start`: a change waits for the next start. */
  readonly applies: "now" | "start";
  /** The variable of the environment that sets it. */
  readonly variable: string;
  /** Hosts with a value of their own. */
  readonly hosts: readonly (OptionValueState & { readonly host: string })[];
}

/** The config file as it is, secrets and all. */
export interface ConfigFile {
  /** Undefined where the server was started without a file. */
  readonly path?: string | undefined;
  readonly format?: "yaml" | "json" | "script" | undefined;
  readonly text?: string | undefined;
  /** Of this text: what saves another one gives it back. */
  readonly etag?: string | undefined;
  readonly is_editable: boolean;
  /** Why it is not. */
  readonly reason?: string | undefined;
}

/** What is wrong in a text of the configuration. */
export interface ConfigFault {
  readonly message: string;
  /** The option, such as `http_ports` or `hosts.www.example.org.http_files_dir`. */
  readonly path?: string | undefined;
  /** From 1, in the text. */
  readonly line?: number | undefined;
  /** From 1. */
  readonly column?: number | undefined;
}

/** What a text would do that is not saved. */
export interface ConfigCheck {
  readonly faults: readonly ConfigFault[];
  /** What can be applied, and is most likely not what was meant: options that nothing reads. */
  readonly warnings: readonly ConfigFault[];
  /** Undefined where the text has faults. */
  readonly plan?: ConfigPlan | undefined;
}
