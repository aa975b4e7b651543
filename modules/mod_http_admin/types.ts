/** What the Admin API answers, beside what the public types of `core/types.ts` say (such as `AuditPage`): for the dashboard. */
import type { ConfigPlan } from "../../core/types.ts";

/** Figures of the server as a whole, of which an hour is kept. */
export type ServerSeries =
  /** Share of one core, from 0. */
  | "cpu"
  /** Share of the time in which the event loop was busy, 0 to 1. */
  | "event_loop"
  /** Bytes. */
  | "rss"
  /** Bytes. */
  | "heap"
  /** Open ones. */
  | "connections"
  /** Requests that were being answered. */
  | "active"
  /** Requests that were over, a second. */
  | "requests"
  /** Answers of 500 and more, a second. */
  | "errors"
  /** Bytes of request bodies, a second. */
  | "received"
  /** Bytes of answer bodies, a second. */
  | "sent";

/** Figures of one route, of which an hour is kept; latencies are seconds. */
export type RouteSeries = "requests" | "errors" | "received" | "sent" | "p50" | "p90" | "p99";

/** `GET /history`: columns of equal length, the oldest sample first, as plots take them. */
export interface History {
  /** Seconds between two samples. */
  readonly interval: number;
  /** When each sample was taken, seconds since 1970. */
  readonly time: readonly number[];
  /** By name; null where there is nothing to tell, such as the latency of no requests. */
  readonly series: Readonly<Partial<Record<ServerSeries | RouteSeries, readonly (number | null)[]>>>;
}

/** What a route has done in a time; rates are a second, latencies seconds. */
export interface RouteWindow {
  readonly requests: number;
  /** Answers of 500 and more. */
  readonly errors: number;
  /** Undefined without requests. */
  readonly p50?: number;
  readonly p90?: number;
  readonly p99?: number;
}

/** `GET /routes/figures`: a row for each route that has answered anything within the hour, the busiest first. */
export interface RouteFigures {
  readonly module: string;
  /** With the whole path: `GET /shop/items/*`; "other" for all routes beyond those that have a row. */
  readonly route: string;
  /** Requests a second, now. */
  readonly rate: number;
  readonly minute: RouteWindow;
  readonly hour: RouteWindow;
}

/** `GET /requests`, and events of the topic `requests`: a request that is over. */
export interface FinishedRequest {
  /** Unique; the log has it, too. */
  readonly id: string;
  /** When it was over: ISO 8601. */
  readonly time: string;
  readonly method: string;
  /** Without its query string, which may have secrets; cut after 1,024 characters. */
  readonly path: string;
  readonly host: string;
  readonly ip: string;
  readonly app?: string | undefined;
  readonly module?: string | undefined;
  /** As in `RouteFigures`. */
  readonly route?: string | undefined;
  /** 0: the client left before one was sent. */
  readonly status: number;
  /** Of the answer's body. */
  readonly bytes: number;
  /** Milliseconds. */
  readonly duration: number;
  /** The client received everything. */
  readonly complete: boolean;
}

/** Events of the topic `figures`, one a second. */
export interface Figures {
  /** ISO 8601. */
  readonly time: string;
  readonly cpu: number;
  readonly event_loop: number;
  readonly rss: number;
  readonly heap: number;
  readonly connections: number;
  /** Requests that are being answered. */
  readonly active: number;
  /** Requests that were over, a second. */
  readonly requests: number;
  readonly errors: number;
  readonly received: number;
  readonly sent: number;
  readonly modules: number;
}

/** Where the value of an option comes from: a file, a variable of the environment, the command line or a program, nobody. */
export type OptionSource = "file" | "environment" | "caller" | "default" | "unset";

/** A value of an option, and its source; secrets are shown as `(secret)`. */
export interface OptionValueState {
  /** As JSON text on one line; undefined where it is not set and has no default. */
  readonly value?: string;
  readonly source: OptionSource;
  /** It waits for the next start; the value is the one in force. */
  readonly is_waiting?: boolean;
}

/** `GET /config`: an option, with the value that is in force. */
export interface OptionState extends OptionValueState {
  readonly name: string;
  /** The module that declares it, "core" for the host; undefined for a name that nobody declares. */
  readonly owner?: string;
  readonly type?: string;
  readonly describe?: string;
  /** As JSON text. */
  readonly default?: string;
  readonly values?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  readonly unit?: string;
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

/** `GET /config/file`: the file as it is, secrets and all. */
export interface ConfigFile {
  /** Undefined where the server was started without a file. */
  readonly path?: string;
  readonly format?: "yaml" | "json" | "script";
  readonly text?: string;
  /** Of this text: what saves another one gives it back. */
  readonly etag?: string;
  readonly is_editable: boolean;
  /** Why it is not. */
  readonly reason?: string;
}

/** What is wrong in a text of the configuration. */
export interface ConfigFault {
  readonly message: string;
  /** The option, such as `http_ports` or `hosts.www.example.org.http_files_dir`. */
  readonly path?: string;
  /** From 1, in the text. */
  readonly line?: number;
  /** From 1. */
  readonly column?: number;
}

/** `POST /config/check`: what a text would do that is not saved. */
export interface ConfigCheck {
  readonly faults: readonly ConfigFault[];
  /** Undefined where the text has faults. */
  readonly plan?: ConfigPlan;
}
