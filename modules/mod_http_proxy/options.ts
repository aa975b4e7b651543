import type { OptionDeclarations, OptionValue } from "../../core/types.ts";

export const options = {
  http_proxy: {
    type: "object",
    default: {},
    applies: "live",
    example: {
      shop: { upstreams: ["http://127.0.0.1:3000", "http://127.0.0.1:3001"], health_path: "/health" },
      wiki: { upstreams: ["unix:/run/wiki.sock"], path: "keep" },
    },
    describe: "Apps that other servers answer, by name: where they are, and what holds for requests to them.",
    entries: {
      upstreams: {
        type: "strings",
        describe:
          "URLs of HTTP or HTTPS, which may have a path that goes before all others, or unix:/PATH/OF/A/SOCKET.",
      },
      balance: {
        type: "enum",
        values: ["round_robin", "least_connections", "first", "client_address"],
        default: "round_robin",
        describe:
          "Which upstream a request goes to. client_address: the same one for the same client, while it is healthy.",
      },
      path: {
        type: "string",
        default: "strip",
        describe: "strip: upstreams see paths without that of the app; keep: as they came; /PREFIX: this in its place.",
      },
      host: {
        type: "string",
        default: "client",
        describe: "The Host header: that of the client, that of the upstream's URL (upstream), or this name.",
      },
      request_headers: {
        type: "object",
        default: {},
        describe: "Headers that upstreams get, in place of those of the client; an empty text takes one away.",
      },
      response_headers: {
        type: "object",
        default: {},
        describe: "Headers that clients get, in place of those of the upstream; an empty text takes one away.",
      },
      connect_timeout: {
        type: "period",
        min: 0.01,
        default: 5,
        describe: "Time for connecting to an upstream, TLS included.",
      },
      response_timeout: {
        type: "period",
        min: 0.01,
        default: 60,
        describe: "Time from the end of a request to the head of its answer.",
      },
      idle_timeout: {
        type: "period",
        min: 0.01,
        default: 300,
        describe:
          "Time in which an upstream must send or take something, once it has begun; holds for websockets, too.",
      },
      max_body: { type: "size", min: 0, default: 0, describe: "Largest request body; 0: no limit." },
      retries: {
        type: "integer",
        min: 0,
        max: 10,
        default: 1,
        describe: "How often a request is tried again, by another upstream, when that can do no harm.",
      },
      retry_time: { type: "period", default: 10, describe: "Time after which nothing is tried again." },
      health_path: {
        type: "string",
        default: "",
        describe: "Path that upstreams are asked for to see whether they are healthy; empty: they are not asked.",
      },
      health_interval: { type: "period", min: 0.01, default: 10, describe: "Time between two such requests." },
      health_timeout: { type: "period", min: 0.01, default: 5, describe: "Time in which they must be answered." },
      health_status: {
        type: "string",
        default: "200-399",
        describe: "Statuses of healthy upstreams, with commas between: 200, 200-299.",
      },
      healthy_after: {
        type: "integer",
        min: 1,
        default: 2,
        describe: "Good answers in a row that make an upstream healthy.",
      },
      unhealthy_after: { type: "integer", min: 1, default: 2, describe: "Bad ones in a row that make it unhealthy." },
      fail_after: {
        type: "integer",
        min: 0,
        default: 3,
        describe:
          "Requests that an upstream fails within fail_window, after which it gets none; 0: never. The only one always gets them.",
      },
      fail_window: { type: "period", min: 0.01, default: 10, describe: "Time in which failures are counted." },
      fail_time: {
        type: "period",
        min: 0.01,
        default: 10,
        describe: "Time for which such an upstream gets no requests.",
      },
      max_connections: {
        type: "integer",
        min: 0,
        default: 0,
        describe: "Requests and websockets of one upstream at once; 0: no limit.",
      },
      keep_alive: {
        type: "period",
        default: 60,
        describe: "Time for which an idle connection to an upstream is kept; 0: none is.",
      },
      max_idle: { type: "integer", min: 0, default: 64, describe: "Idle connections that are kept for one upstream." },
      tls_ca: {
        type: "path",
        must_exist: true,
        required: false,
        describe: "File with the certificates of authorities, in PEM, in place of those of Node.js.",
      },
      tls_server_name: {
        type: "string",
        default: "",
        describe: "The name that upstreams have in their certificates; empty: that of their URL.",
      },
      tls_insecure: {
        type: "boolean",
        default: false,
        describe: "Take any certificate: whoever is on the way may read and change everything.",
      },
    },
  },
} as const satisfies OptionDeclarations;

export type ProxyOptions = NonNullable<OptionValue<typeof options.http_proxy>>;
export type ProxyEntry = ProxyOptions[string];
