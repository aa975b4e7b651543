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
    describe: "Apps that forward their requests to other servers, by name.",
    entries: {
      upstreams: {
        type: "strings",
        describe: "URLs of HTTP or HTTPS, with a path that is put in front of all others, or unix:/PATH/OF/A/SOCKET.",
      },
      balance: {
        type: "enum",
        values: ["round_robin", "least_connections", "first", "client_address"],
        default: "round_robin",
        describe:
          "Which upstream gets a request. client_address: the same one for the same client, while it is healthy.",
      },
      path: {
        type: "string",
        default: "strip",
        describe:
          "strip: upstreams see paths without that of the app; keep: unchanged paths; /PREFIX: this instead of the path of the app.",
      },
      host: {
        type: "string",
        default: "client",
        describe:
          "The Host header for upstreams: that of the client (client), that of the upstream's URL (upstream), or this name.",
      },
      request_headers: {
        type: "object",
        default: {},
        describe: "Headers for upstreams, instead of the client's; an empty text removes one.",
      },
      response_headers: {
        type: "object",
        default: {},
        describe: "Headers for clients, instead of the upstream's; an empty text removes one.",
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
        describe: "Time from the end of a request to the head of its response.",
      },
      idle_timeout: {
        type: "period",
        min: 0.01,
        default: 300,
        describe: "Longest time without progress, once a response or a websocket has begun.",
      },
      max_body: { type: "size", min: 0, default: 0, describe: "Largest request body; 0: no limit." },
      retries: {
        type: "integer",
        min: 0,
        max: 10,
        default: 1,
        describe: "How often a request is sent to a different upstream after a failure, if that can do no harm.",
      },
      retry_time: { type: "period", default: 10, describe: "Time after which no request is retried." },
      health_path: {
        type: "string",
        default: "",
        describe: "Path of health checks; empty: no checks.",
      },
      health_interval: { type: "period", min: 0.01, default: 10, describe: "Time between two health checks." },
      health_timeout: { type: "period", min: 0.01, default: 5, describe: "Time for the response to a health check." },
      health_status: {
        type: "string",
        default: "200-399",
        describe: "Statuses of healthy upstreams, separated by commas: 200, 200-299.",
      },
      healthy_after: {
        type: "integer",
        min: 1,
        default: 2,
        describe: "Consecutive good checks that make an upstream healthy.",
      },
      unhealthy_after: {
        type: "integer",
        min: 1,
        default: 2,
        describe: "Consecutive bad checks that make it unhealthy.",
      },
      fail_after: {
        type: "integer",
        min: 0,
        default: 3,
        describe:
          "Failed requests within fail_window after which an upstream gets none; 0: never. The only upstream of an app always gets its requests.",
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
        describe: "Simultaneous requests and websockets of one upstream; 0: no limit.",
      },
      keep_alive: {
        type: "period",
        default: 60,
        describe: "Time for which an idle connection to an upstream stays open; 0: none does.",
      },
      max_idle: { type: "integer", min: 0, default: 64, describe: "Idle connections that stay open for one upstream." },
      tls_ca: {
        type: "path",
        must_exist: true,
        required: false,
        describe: "PEM file with the certificates of authorities, instead of those of Node.js.",
      },
      tls_server_name: {
        type: "string",
        default: "",
        describe: "The name in the certificates of upstreams; empty: that of their URL.",
      },
      tls_insecure: {
        type: "boolean",
        default: false,
        describe: "Accept any certificate. Anybody between the servers may then read and change everything.",
      },
    },
  },
} as const satisfies OptionDeclarations;

export type ProxyOptions = NonNullable<OptionValue<typeof options.http_proxy>>;
export type ProxyEntry = ProxyOptions[string];
