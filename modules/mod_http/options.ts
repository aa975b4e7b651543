import type { OptionDeclarations } from "../../core/types.ts";

/** Seconds of a day: Node's timers fire at once for delays beyond 24 days. */
const MAX_PERIOD = 86_400;

/** Options of the HTTP service; names are those of Prosody's HTTP server where it has them. */
export const options = {
  http_ports: {
    type: "ports",
    default: [5280],
    describe: "Ports for plain HTTP; an empty list switches it off.",
    per_host: false,
  },
  https_ports: {
    type: "ports",
    default: [5281],
    describe: "Ports for HTTPS; an empty list switches it off.",
    per_host: false,
  },
  http_interfaces: {
    type: "strings",
    default: ["127.0.0.1", "::1"],
    describe: 'Addresses on which plain HTTP listens; "*" is every address.',
    per_host: false,
  },
  https_interfaces: {
    type: "strings",
    default: ["*"],
    describe: 'Addresses on which HTTPS listens; "*" is every address.',
    per_host: false,
  },
  http_paths: {
    type: "object",
    keys: "apps",
    example: { hello: "/" },
    describe: "App name to base path; $host stands for the host's name.",
  },
  http_external_url: {
    type: "url",
    example: "https://www.example.org/",
    describe: "The URL under which a reverse proxy publishes this server.",
  },
  http_default_host: {
    type: "string",
    example: "www.example.org",
    describe: "The entry of hosts that serves requests for unknown hosts.",
    per_host: false,
  },
  http_middleware: {
    type: "any",
    example: [
      { use: "koa-compress", options: { threshold: 1024 }, order: 10 },
      { use: "./limits.js", apps: ["api"] },
    ],
    describe:
      "Koa middleware before all apps or some: packages or paths, each with options for what it exports, order (lower is further out) and apps.",
    per_host: false,
  },
  http_default_headers: {
    type: "object",
    example: {
      content_type: "text/plain; charset=utf-8",
      x_content_type_options: "nosniff",
      shop: { content_type: "text/html; charset=utf-8" },
    },
    describe:
      "content_type and x_content_type_options for answers that do not set them, for every app or under an app's name.",
  },
  http_max_content_size: {
    type: "size",
    default: "10MiB",
    min: 0,
    describe: "Largest request body that is buffered for a handler; a larger one is answered 413.",
    per_host: false,
  },
  http_max_header_size: {
    type: "size",
    default: "16KiB",
    min: 1024,
    max: 1024 * 1024,
    describe: "Largest request head; a larger one is answered 431.",
    per_host: false,
  },
  http_head_timeout: {
    type: "period",
    default: 20,
    min: 0.1,
    max: MAX_PERIOD,
    describe: "A request head (or TLS handshake) must be complete within this time.",
    per_host: false,
  },
  http_progress_timeout: {
    type: "period",
    default: 30,
    min: 0.1,
    max: MAX_PERIOD,
    describe: "While a client is waited for, http_progress_bytes must move within each such time.",
    per_host: false,
  },
  http_progress_bytes: {
    type: "size",
    default: 1024,
    min: 1,
    describe: "Bytes that a slow sender or reader must move within http_progress_timeout.",
    per_host: false,
  },
  http_idle_timeout: {
    type: "period",
    default: 60,
    min: 0.1,
    max: MAX_PERIOD,
    describe: "A connection without a request is closed after this time.",
    per_host: false,
  },
  http_max_streams: {
    type: "integer",
    default: 100,
    min: 1,
    max: 10_000,
    describe: "Concurrent requests on one HTTP/2 connection.",
    per_host: false,
  },
  http_max_unsent: {
    type: "integer",
    default: 256 * 1024 * 1024,
    min: 1024 * 1024,
    unit: "bytes",
    describe:
      "Memory that may wait for clients, of all answers together, 128 KiB counted for each that is sent in pieces; while more does, clients that take nothing for a second are cut, and answers wait before they begin.",
    per_host: false,
  },
  http_websocket_ping_interval: {
    type: "period",
    default: 30,
    min: 0,
    max: MAX_PERIOD,
    describe:
      "Websockets are pinged each such time, and cut when the client stays silent for as long again; 0 leaves both out.",
    per_host: false,
  },
  http_websocket_close_timeout: {
    type: "period",
    default: 5,
    min: 0.05,
    max: MAX_PERIOD,
    describe: "A client that does not agree to the end of a websocket within this time is cut off.",
    per_host: false,
  },
  http_websocket_max_message_size: {
    type: "size",
    default: "1MiB",
    min: 1,
    max: 1024 * 1024 * 1024,
    describe:
      "Largest websocket message taken from a client, where the app sets no limit; a larger one is closed 1009.",
    per_host: false,
  },
  http_websocket_max_unsent: {
    type: "size",
    default: "16MiB",
    min: 64 * 1024,
    describe:
      "A websocket whose client leaves more than this unread, with 700 for each message, is cut when one more is sent.",
    per_host: false,
  },
  trusted_proxies: {
    type: "strings",
    default: ["127.0.0.1", "::1"],
    describe: "Addresses and CIDR ranges of reverse proxies whose forwarding headers are believed.",
    per_host: false,
  },
  http_legacy_x_forwarded: {
    type: "boolean",
    default: true,
    describe: "Read X-Forwarded-For and X-Forwarded-Proto (true) or the Forwarded header (false).",
    per_host: false,
  },
  http_default_cors_enabled: {
    type: "boolean",
    default: false,
    describe: "CORS for every app that does not say otherwise.",
  },
  http_cors_override: {
    type: "object",
    keys: "apps",
    example: { hello: { enabled: true, origins: ["https://app.example.org"] } },
    describe: "App name to CORS settings { enabled, credentials, origins, headers } that win over the app's own.",
  },
  access_control_allow_origins: {
    type: "strings",
    default: ["*"],
    describe: "Origins that may read answers where CORS is on.",
  },
  access_control_allow_headers: {
    type: "strings",
    default: ["Content-Type"],
    describe: "Request headers that other origins may set.",
  },
  access_control_allow_credentials: {
    type: "boolean",
    default: false,
    describe: "May other origins send cookies and authorization?",
  },
  access_control_max_age: {
    type: "period",
    default: 7200,
    min: 0,
    describe: "For how long a browser may remember the answer to a preflight.",
  },
} satisfies OptionDeclarations;
