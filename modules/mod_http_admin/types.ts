/** What the Admin API answers, for the dashboard and other programs: what the host makes, and what this module makes of it. */
export type {
  AuditPage,
  Change,
  ConfigCheck,
  ConfigFault,
  ConfigFile,
  ConfigPlan,
  LogLine,
  OptionSource,
  OptionState,
  OptionValueState,
  ServerStatus,
} from "../../core/types.ts";

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
