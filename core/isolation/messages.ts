import type { ConfigSources } from "../config/index.ts";
import type { HttpSettings } from "../http/index.ts";
import type {
  HttpProvider,
  ListeningPort,
  ModuleState,
  OptionDeclarations,
  PresentedToken,
  StickyBy,
} from "../types.ts";
import type { SentError } from "./channel.ts";
import type { Shape } from "./exports.ts";

/** What a worker is started with: the file that it evaluates first. */
export interface WorkerCode {
  readonly source: {
    readonly name: string;
    readonly file: string;
    readonly directory: string;
    readonly root: string | undefined;
  };
  readonly loadTimeout: number;
}

/** What an instance of it is made from. */
export interface WorkerTask {
  readonly host: string;
  readonly reloading: boolean;
  /** Where `add_host` of a global module is called. */
  readonly hosts: readonly string[];
  readonly config: ConfigSources;
  /** By the name of the module that declares them. */
  readonly declarations: Readonly<Record<string, OptionDeclarations>>;
  /** What the modules give that it depends on, by name. */
  readonly depends: Readonly<Record<string, Shape>>;
  readonly loadTimeout: number;
  readonly listening: readonly ListeningPort[];
  readonly states: readonly ModuleState[];
  readonly serves: boolean;
}

/** What a file declares. */
export interface Described {
  readonly options: OptionDeclarations;
  readonly depends: readonly string[];
  readonly global: boolean;
  readonly shared?: boolean;
  readonly sticky?: StickyBy;
  readonly hints: readonly string[];
  readonly files: readonly string[];
}

/** The token that let a request in: the host has checked it, and counts what is done with it. */
export type Bearer = Pick<PresentedToken, "id" | "name" | "scopes">;

/** An app of an isolated module, as the host sees it. */
export interface ProvidedApp {
  readonly host: string;
  /** Undefined without a table of routes. */
  readonly keys: readonly string[] | undefined;
  readonly hasMiddleware: boolean;
  readonly place: Pick<
    HttpProvider,
    "name" | "default_path" | "priority" | "auth" | "cors" | "default_headers" | "websocket" | "upload_pause"
  >;
}

/** What a module has declared once its code has run. */
export interface Loaded {
  readonly exports: Shape;
  readonly global: boolean;
  /** It depends on `http`, and may provide apps now or later. */
  readonly serves: boolean;
  readonly apps: readonly ProvidedApp[];
  /** Events that it wants to hear. */
  readonly events: readonly string[];
  /** Which of these functions it has. */
  readonly has: readonly string[];
}

/** Where the worker shall serve requests, and how. */
export interface Serving {
  readonly path: string;
  /** What each request has to bring. */
  readonly token: string;
  readonly settings: HttpSettings;
  readonly grace: number;
}

/** The client's connection. */
export interface Peer {
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  readonly localAddress: string | undefined;
  readonly localPort: number | undefined;
  readonly encrypted: boolean;
}

/** What the worker is told of a request: JSON in PEER_FIELD. */
export interface RequestFacts {
  readonly token: string;
  readonly id: string;
  readonly peer: Peer;
  readonly bearer: Bearer | undefined;
  /** It came as HTTP/1.0, which needs no `Host`. */
  readonly isOld?: boolean;
}

/** Why a worker answers with an error page, which the host makes: JSON in REFUSED_FIELD. */
export interface Refusal {
  readonly message: string | undefined;
  readonly error: SentError | undefined;
}

/** JSON for a header. */
export function inAscii(value: RequestFacts | Refusal): string {
  return JSON.stringify(value).replace(
    /[^ -~]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Header fields between the host and a worker; clients cannot set them, nor see them. */
export const PEER_FIELD = "x-modhost-peer";
export const PASSED_FIELD = "x-modhost-passed";
export const REFUSED_FIELD = "x-modhost-refused";
export const INNER_FIELDS: ReadonlySet<string> = new Set([PEER_FIELD, PASSED_FIELD, REFUSED_FIELD]);
