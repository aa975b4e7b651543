import type { MessagePort } from "node:worker_threads";
import type { ConfigSources } from "../config/index.ts";
import type { HttpSettings } from "../http/index.ts";
import type { ModuleCode } from "../module/code.ts";
import type { ModuleSource } from "../module/locate.ts";
import type { ModuleContext } from "../module/module_context.ts";
import type { SerializedError } from "../relay/errors.ts";
import type { InnerAddress, RequestFacts } from "../relay/inner_request.ts";
import type {
  HttpProvider,
  ListeningPort,
  ModuleState,
  NamedTokenScopes,
  OptionDeclarations,
  PresentedToken,
} from "../types.ts";
import type { Shape } from "./exports.ts";

/**
 * The data that a worker starts with: the file that it evaluates first, and its port to the host.
 */
export interface WorkerCode {
  readonly source: SourceFile;
  readonly loadTimeout: number;
  /** Removed from `workerData` before any code of the module runs. */
  readonly port: MessagePort;
  /** A message at this port notifies the host that messages wait at `port`. Removed as well. */
  readonly bell: MessagePort;
  /** Contains 1 from the notification until the host begins to read. */
  readonly isRung: Int32Array;
}

/** The data that a sandboxed process starts with: JSON in its first argument. */
export interface SandboxStart {
  readonly source: SourceFile;
  readonly loadTimeout: number;
  /** Maximum number of bytes of a message to the host. */
  readonly maxMessage: number;
  /** Calls of `fetch` for one request. */
  readonly subrequests: number;
  /** A certificate in PEM form that it trusts in addition. Tests set it. */
  readonly certificate?: string;
  /**
   * Paths of the sockets that it listens at. A process that the kernel restricts has them as
   * descriptors instead, because it can create none.
   */
  readonly paths?: { readonly requests: string; readonly connections: string };
}

/** A module with the file that the worker evaluates. */
export type SourceFile = Pick<ModuleSource, "name" | "directory" | "root"> & { readonly file: string };

/** The data that an instance of the module is made from. */
export interface WorkerTask extends Pick<ModuleContext, "loadTimeout" | "serves"> {
  readonly host: string;
  readonly reloading: boolean;
  /** Hosts for which `add_host` of a global module is called. */
  readonly hosts: readonly string[];
  readonly config: ConfigSources;
  /** Declared options by the name of the module that declares them. */
  readonly declarations: Readonly<Record<string, OptionDeclarations>>;
  /** The exports of the modules that it depends on, by name. */
  readonly depends: Readonly<Record<string, Shape>>;
  readonly listening: readonly ListeningPort[];
  readonly states: readonly ModuleState[];
  /** Set for a sandboxed module. */
  readonly restriction: Restriction | undefined;
}

/** Rules that the module object of a sandboxed module applies itself. The host decides all else. */
export interface Restriction {
  /** Options that it may read, in addition to its own. */
  readonly options: readonly string[];
  /** Whether it has a data folder, which `data_path` returns. */
  readonly hasData: boolean;
  /** Whether nothing is refused, and reads are only reported. */
  readonly isAudited: boolean;
}

/** The declarations of a file. */
export type Described = Pick<
  ModuleCode,
  "options" | "depends" | "global" | "shared" | "sticky" | "permissions" | "hints" | "files"
>;

/** The token that let a request in. The host has checked it, and counts its use. */
export type Bearer = Pick<PresentedToken, "id" | "name" | "scopes">;

/** An app of an isolated module, as the host sees it. */
export interface ProvidedApp {
  readonly host: string;
  /** Undefined without a table of routes. */
  readonly keys: readonly string[] | undefined;
  readonly hasMiddleware: boolean;
  readonly settings: Pick<HttpProvider, (typeof appSettings)[number]>;
}

/** Fields of an app that cross threads as they are. */
export const appSettings = [
  "name",
  "default_path",
  "priority",
  "auth",
  "cors",
  "default_headers",
  "websocket",
  "upload_pause",
] as const;

/** The declarations of a module whose code has run. */
export interface Loaded {
  readonly exports: Shape;
  readonly global: boolean;
  /** Whether it may provide apps now or later. */
  readonly serves: boolean;
  readonly apps: readonly ProvidedApp[];
  /** The kinds of token scopes that it declares. */
  readonly scopes: readonly NamedTokenScopes[];
  /** Events that it hooks. */
  readonly events: readonly string[];
  /** Which of the functions `save` and `restore` it has. */
  readonly has: readonly string[];
}

/** The address at which the worker serves requests, and its settings. */
export interface Serving extends InnerAddress {
  readonly settings: HttpSettings;
  readonly grace: number;
}

/** The facts that a worker gets about a request, in addition to its client. */
export interface WorkerRequestFacts extends RequestFacts {
  readonly id: string;
  readonly bearer: Bearer | undefined;
  /** Fields for log lines about a traced request. */
  readonly traced?: Readonly<Record<string, unknown>> | undefined;
}

/** Why a worker refuses a request. The host makes the error page. JSON in REFUSED_FIELD. */
export interface Refusal {
  readonly message: string | undefined;
  readonly error: SerializedError | undefined;
}
