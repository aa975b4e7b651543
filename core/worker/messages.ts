import type { ConfigSources } from "../config/index.ts";
import type { HttpSettings } from "../http/index.ts";
import type { HttpProvider, ListeningPort, ModuleState, OptionDeclarations, PresentedToken } from "../types.ts";
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
  readonly hints: readonly string[];
  readonly files: readonly string[];
}

/** The token that let a request in: the host has checked it, and counts what is done with it. */
export type Bearer = Pick<PresentedToken, "id" | "name" | "scopes">;

/** An app of an isolated module, as the host sees it. */
export interface ProvidedApp {
  readonly host: string;
  readonly keys: readonly string[];
  readonly hasMiddleware: boolean;
  readonly place: Pick<
    HttpProvider,
    "name" | "default_path" | "priority" | "auth" | "cors" | "default_headers" | "websocket"
  >;
}

/** What a module has declared once its code has run. */
export interface Loaded {
  readonly exports: Shape;
  readonly global: boolean;
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

/** Header fields between the host and a worker; clients cannot set them, nor see them. */
export const PEER_FIELD = "x-modhost-peer";
export const PASSED_FIELD = "x-modhost-passed";
export const REFUSED_FIELD = "x-modhost-refused";
export const INNER_FIELDS: ReadonlySet<string> = new Set([PEER_FIELD, PASSED_FIELD, REFUSED_FIELD]);
