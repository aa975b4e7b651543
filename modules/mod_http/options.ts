import type { OptionDeclarations } from "../../core/types.ts";

/** Seconds in a day. Node's timers fire at once for delays of more than 24 days. */
const MAX_PERIOD = 86_400;

/**
 * Options of the HTTP service. They have the names of Prosody's HTTP server where it has such an
 * option.
 */
export const options = {
  http_ports: {
    type: "ports",
    default: [5280],
    applies: "live",
    describe: "Ports for plain HTTP; an empty list turns it off.",
    per_host: false,
  },
  https_ports: {
    type: "ports",
    default: [5281],
    applies: "live",
    describe: "Ports for HTTPS; an empty list turns it off.",
    per_host: false,
  },
  http_interfaces: {
    type: "strings",
    protects: true,
    default: ["127.0.0.1", "::1"],
    applies: "live",
    describe: 'Addresses that plain HTTP listens on; "*" means all addresses.',
    per_host: false,
  },
  https_interfaces: {
    type: "strings",
    protects: true,
    default: ["*"],
    applies: "live",
    describe: 'Addresses that HTTPS listens on; "*" means all addresses.',
    per_host: false,
  },
  https_http2: {
    type: "boolean",
    default: true,
    applies: "live",
    describe: "Whether HTTPS offers HTTP/2; if not, every port of `https_ports` speaks HTTP/1.1 only.",
    per_host: false,
  },
  https_http2_except: {
    type: "ports",
    default: [],
    applies: "live",
    describe: "Ports of `https_ports` that speak HTTP/1.1 only, although `https_http2` is on.",
    per_host: false,
  },
  http_paths: {
    type: "object",
    keys: "apps",
    example: { hello: "/" },
    applies: "live",
    describe: "Base paths of apps, by app name. $host stands for the name of the host.",
  },
  http_external_url: {
    type: "url",
    example: "https://www.example.org/",
    applies: "live",
    describe: "URL at which clients reach this server, for example through a reverse proxy.",
  },
  http_default_host: {
    type: "string",
    example: "www.example.org",
    applies: "live",
    describe: "Entry of hosts that serves requests for unknown host names.",
    per_host: false,
  },
  http_middleware: {
    type: "any",
    protects: true,
    example: [
      { use: "koa-compress", options: { threshold: 1024 }, order: 10 },
      { use: "./limits.js", apps: ["api"] },
    ],
    applies: "live",
    describe:
      "Koa middleware that runs before all apps, or before some: a list of packages or files (use), with options, order (the lowest runs first) and apps.",
    per_host: false,
  },
  http_default_headers: {
    type: "object",
    example: {
      content_type: "text/plain; charset=utf-8",
      x_content_type_options: "nosniff",
      shop: { content_type: "text/html; charset=utf-8" },
    },
    applies: "live",
    describe:
      "content_type and x_content_type_options for responses that do not set them: for all apps, or for one under its name.",
  },
  http_max_content_size: {
    type: "size",
    default: "10MiB",
    min: 0,
    applies: "live",
    describe: "Largest request body that is read into memory for a handler; a larger one gets a 413.",
    per_host: false,
  },
  http_max_header_size: {
    type: "size",
    default: "16KiB",
    min: 1024,
    max: 1024 * 1024,
    applies: "live",
    describe:
      "Largest request head (request line and headers); a larger one gets a 431. HTTP/2 accepts no head over 64 KiB, whatever this option says: such a head ends the connection.",
    per_host: false,
  },
  http_head_timeout: {
    type: "period",
    default: 20,
    min: 0.1,
    max: MAX_PERIOD,
    applies: "live",
    describe: "Time within which a client must have sent the request head (or completed the TLS handshake).",
    per_host: false,
  },
  http_progress_timeout: {
    type: "period",
    default: 30,
    min: 0.1,
    max: MAX_PERIOD,
    applies: "live",
    describe:
      "While the server waits for a client to send or to read, at least http_progress_bytes must be transferred in each such period.",
    per_host: false,
  },
  http_progress_bytes: {
    type: "size",
    default: 1024,
    min: 1,
    applies: "live",
    describe: "How much a slow client must send or read within http_progress_timeout.",
    per_host: false,
  },
  http_idle_timeout: {
    type: "period",
    default: 60,
    min: 0.1,
    max: MAX_PERIOD,
    applies: "live",
    describe: "A connection without a request is closed after this time.",
    per_host: false,
  },
  http_max_streams: {
    type: "integer",
    default: 100,
    min: 1,
    max: 10_000,
    applies: "live",
    describe: "Maximum number of concurrent requests on one HTTP/2 connection.",
    per_host: false,
  },
  http_max_unsent: {
    type: "integer",
    default: 256 * 1024 * 1024,
    min: 1024 * 1024,
    unit: "bytes",
    applies: "live",
    describe:
      "Memory that responses waiting for slow clients may take altogether; each streamed response counts for 128 KiB. Above it, clients that read nothing for a second are disconnected, and new responses wait.",
    per_host: false,
  },
  http_websocket_ping_interval: {
    type: "period",
    default: 30,
    min: 0,
    max: MAX_PERIOD,
    applies: "live",
    describe:
      "Interval at which websockets are pinged. A client that does not respond before the next ping is disconnected; 0 turns both off.",
    per_host: false,
  },
  http_websocket_close_timeout: {
    type: "period",
    default: 5,
    min: 0.05,
    max: MAX_PERIOD,
    applies: "live",
    describe: "How long to wait for a client to confirm the close of a websocket, before it is disconnected.",
    per_host: false,
  },
  http_websocket_max_message_size: {
    type: "size",
    default: "1MiB",
    min: 1,
    max: 1024 * 1024 * 1024,
    applies: "live",
    describe:
      "Largest websocket message accepted from a client, unless the app sets its own limit; after a larger one the websocket is closed with 1009.",
    per_host: false,
  },
  http_websocket_max_unsent: {
    type: "size",
    default: "16MiB",
    min: 64 * 1024,
    applies: "live",
    describe:
      "How much a client may leave unread on a websocket, counting 700 bytes of overhead per message. Above it, the next message disconnects the client.",
    per_host: false,
  },
  trusted_proxies: {
    type: "strings",
    protects: true,
    default: ["127.0.0.1", "::1"],
    applies: "live",
    describe: "Addresses and CIDR ranges of reverse proxies whose forwarding headers are trusted.",
    per_host: false,
  },
  http_legacy_x_forwarded: {
    type: "boolean",
    default: true,
    applies: "live",
    describe:
      "Which headers of trusted proxies to read: X-Forwarded-For, -Proto and -Host (true) or Forwarded (false).",
    per_host: false,
  },
  http_default_cors_enabled: {
    type: "boolean",
    default: false,
    applies: "live",
    describe: "Turn on CORS for every app that does not configure it itself.",
  },
  http_cors_override: {
    type: "object",
    keys: "apps",
    example: { hello: { enabled: true, origins: ["https://app.example.org"] } },
    entries: {
      enabled: { type: "boolean", required: false, describe: "Whether CORS is on." },
      credentials: {
        type: "boolean",
        required: false,
        describe: "Whether pages may send cookies and credentials; only with origins by name.",
      },
      origins: { type: "strings", required: false, describe: 'Origins of pages that may read responses; "*" for all.' },
      headers: {
        type: "object",
        required: false,
        describe: "Further request headers that pages may set: name to true, or to false to remove one.",
      },
    },
    applies: "live",
    describe: "CORS settings { enabled, credentials, origins, headers } by app name; they override the app's own.",
  },
  access_control_allow_origins: {
    type: "strings",
    protects: true,
    default: ["*"],
    applies: "live",
    describe: "Origins that may read responses where CORS is on.",
  },
  access_control_allow_headers: {
    type: "strings",
    default: ["Content-Type"],
    applies: "live",
    describe: "Request headers that pages of other origins may set.",
  },
  access_control_allow_credentials: {
    type: "boolean",
    default: false,
    applies: "live",
    describe: "Whether pages of other origins may send cookies and credentials.",
  },
  access_control_max_age: {
    type: "period",
    default: 7200,
    min: 0,
    applies: "live",
    describe: "How long a browser may cache the response to a preflight request.",
  },
} satisfies OptionDeclarations;
