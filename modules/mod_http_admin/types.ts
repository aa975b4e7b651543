/**
 * Types of the Admin API's responses, for the dashboard and other programs. Some are the host's own
 * types.
 */
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

/** Metrics of the server as a whole. The history covers one hour. */
export type ServerSeries =
  /** Share of one core, from 0. */
  | "cpu"
  /** Share of the time in which the event loop was busy, 0 to 1. */
  | "event_loop"
  /** Memory of the process in bytes. */
  | "rss"
  /** Used heap of V8 in bytes. */
  | "heap"
  /** Open connections. */
  | "connections"
  /** Requests in flight. */
  | "active"
  /** Finished requests per second. */
  | "requests"
  /** Responses with status 500 and above per second. */
  | "errors"
  /** Bytes of request bodies per second. */
  | "received"
  /** Bytes of response bodies per second. */
  | "sent";

/** Metrics of one route. The history covers one hour; latencies are in seconds. */
export type RouteSeries = "requests" | "errors" | "received" | "sent" | "p50" | "p90" | "p99";

/** `GET /history`: columns of equal length, the oldest sample first, ready for plots. */
export interface History {
  /** Seconds between two samples. */
  readonly interval: number;
  /** The time of each sample, in seconds since 1970. */
  readonly time: readonly number[];
  /** Series by name. A value is null where there is none, such as the latency of zero requests. */
  readonly series: Readonly<Partial<Record<ServerSeries | RouteSeries, readonly (number | null)[]>>>;
}

/** Totals of a route over a period. Rates are per second, latencies in seconds. */
export interface RouteWindow {
  readonly requests: number;
  /** Responses with status 500 and above. */
  readonly errors: number;
  /** Undefined without requests. */
  readonly p50?: number;
  readonly p90?: number;
  readonly p99?: number;
}

/**
 * `GET /routes/figures`: one row for each route with requests in the last hour, the busiest first.
 */
export interface RouteFigures {
  readonly module: string;
  /**
   * The route with its full path: `GET /shop/items/*`; "other" for all routes without a row of
   * their own.
   */
  readonly route: string;
  /** Current requests per second. */
  readonly rate: number;
  readonly minute: RouteWindow;
  readonly hour: RouteWindow;
}

/** `GET /requests`, and events of the topic `requests`: a finished request. */
export interface FinishedRequest {
  /** A unique id, which is also in the log. */
  readonly id: string;
  /** The time when it finished, ISO 8601. */
  readonly time: string;
  readonly method: string;
  /** Path without the query string, which may contain secrets. Cut after 1,024 characters. */
  readonly path: string;
  readonly host: string;
  readonly ip: string;
  readonly app?: string | undefined;
  readonly module?: string | undefined;
  /** As in `RouteFigures`. */
  readonly route?: string | undefined;
  /** 0 if the client disconnected before a status was sent. */
  readonly status: number;
  /** Size of the response body. */
  readonly bytes: number;
  /** Duration of the request in milliseconds. */
  readonly duration: number;
  /** Whether the client received everything. */
  readonly complete: boolean;
}

/** Events of the topic `figures`, one per second. */
export interface Figures {
  /** ISO 8601. */
  readonly time: string;
  readonly cpu: number;
  readonly event_loop: number;
  readonly rss: number;
  readonly heap: number;
  readonly connections: number;
  /** Requests in flight. */
  readonly active: number;
  /** Finished requests per second. */
  readonly requests: number;
  readonly errors: number;
  readonly received: number;
  readonly sent: number;
  readonly modules: number;
}
