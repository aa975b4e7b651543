import type { OptionDeclarations } from "../types.ts";

/**
 * The options of the host itself. Modules declare their own; an option exists once, and its parsing, its checks, the
 * JSON Schema, the commented sample and the reference page come from the declaration.
 */
export const coreOptions = {
  modules_enabled: {
    type: "strings",
    default: [
      "http",
      "http_errors",
      "http_files",
      "http_dir_listing",
      "http_log",
      "http_health",
      "http_admin",
      "http_admin_node",
      "backup",
      "http_api",
    ],
    applies: "live",
    describe: "Modules to load, by name, path or npm package. An entry of hosts can add further modules for that host.",
  },
  modules_disabled: {
    type: "strings",
    default: [],
    applies: "live",
    describe: "Modules that are never loaded, even if another module depends on them.",
  },
  plugin_paths: {
    type: "strings",
    default: [],
    per_host: false,
    must_exist: true,
    example: ["./modules"],
    applies: "live",
    describe:
      "Folders that are searched for modules, in this order, before the bundled modules; relative to the config file.",
  },
  plugin_autoload: {
    type: "boolean",
    default: false,
    per_host: false,
    applies: "live",
    describe: "Load every module found in plugin_paths, whether modules_enabled names it or not.",
  },
  data_path: {
    type: "path",
    default: "./data",
    per_host: false,
    applies: "start",
    describe: "Folder in which the server and its modules store their data; relative to the config file.",
  },
  hosts: {
    type: "object",
    per_host: false,
    example: { "www.example.org": { modules_disabled: ["http_dir_listing"] } },
    applies: "live",
    describe:
      "Virtual hosts: each host name with the options for that host. If not set, every host name is served in the same way.",
  },
  certificates: {
    type: "object",
    per_host: false,
    example: { "www.example.org": { certificate: "./certs/www.pem", key: "./certs/www.key" } },
    entries: {
      certificate: { type: "path", describe: "PEM file with the certificate, followed by its chain." },
      key: { type: "path", describe: "PEM file with the private key." },
    },
    applies: "live",
    describe:
      'TLS certificates by host name; "*.example.org" and "*" are wildcards. Other names get a self-signed certificate.',
  },
  acme_hosts: {
    type: "strings",
    default: [],
    per_host: false,
    example: ["www.example.org"],
    applies: "live",
    describe:
      "Host names that get a certificate each from an authority, by ACME, and new ones before they expire. What `certificates` has for a name goes first.",
  },
  acme_agree: {
    type: "boolean",
    default: false,
    per_host: false,
    applies: "live",
    describe: "You agree to the terms of the authority of `acme_directory`: nothing is ordered without it.",
  },
  acme_directory: {
    type: "url",
    default: "https://acme-v02.api.letsencrypt.org/directory",
    per_host: false,
    applies: "live",
    describe: "Directory of the authority that `acme_hosts` get their certificates from.",
  },
  acme_email: {
    type: "string",
    per_host: false,
    example: "admin@example.org",
    applies: "live",
    describe: "Address that the authority may write to.",
  },
  acme_challenge: {
    type: "enum",
    values: ["http-01", "tls-alpn-01"],
    default: "http-01",
    per_host: false,
    applies: "live",
    describe:
      "How the authority is shown that a name belongs to this server: it asks at port 80 (http-01) or at port 443 (tls-alpn-01).",
  },
  acme_ca_file: {
    type: "path",
    per_host: false,
    must_exist: true,
    applies: "live",
    describe:
      "PEM file of the certificates that the authority's own server is trusted by, for an authority of your own.",
  },
  acme_eab_id: {
    type: "string",
    per_host: false,
    applies: "live",
    describe: "Key identifier of your account with the authority, for one that wants it (external account binding).",
  },
  acme_eab_key: {
    type: "string",
    per_host: false,
    secret: true,
    applies: "live",
    describe: "The key to `acme_eab_id`, in base64url.",
  },
  log_level: {
    type: "enum",
    values: ["debug", "info", "warn", "error"],
    default: "info",
    per_host: false,
    applies: "live",
    describe: "Lowest level that is logged.",
  },
  log_file: {
    type: "path",
    per_host: false,
    applies: "start",
    example: "/var/log/modhost/server.log",
    describe:
      "File for the log, as JSON lines unless log_format says otherwise. If not set, it goes to the standard error. `modhost reopen` and SIGUSR2 open it again, for whoever moves it away.",
  },
  log_format: {
    type: "enum",
    values: ["auto", "json", "pretty"],
    default: "auto",
    per_host: false,
    applies: "live",
    describe: "Format of the log; auto means pretty on a terminal and JSON lines elsewhere.",
  },
  load_timeout: {
    type: "period",
    default: 30,
    min: 0.1,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    applies: "live",
    describe:
      "How long the code of a module may take to load. A module that takes longer has failed; the others are served without it.",
  },
  unload_grace: {
    type: "period",
    default: 10,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    applies: "live",
    describe: "How long a module that is being unloaded or replaced may take to finish its requests.",
  },
  workers: {
    type: "integer",
    default: 1,
    min: 0,
    max: 256,
    per_host: false,
    applies: "start",
    describe:
      "Processes that modhost run serves HTTP with; 0: as many as there are processors. Modules that say that they are shared run in the first one only.",
  },
  loop_watchdog: {
    type: "period",
    default: 5,
    min: 0,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    applies: "start",
    describe:
      "When the event loop stands still for so long, modhost run writes to standard error which module's code holds it. 0: nobody watches, as in a program that runs a host of its own.",
  },
  loop_watchdog_exit: {
    type: "boolean",
    default: false,
    per_host: false,
    applies: "start",
    describe: "The process is killed then, so that the supervisor starts it again.",
  },
  modules_isolated: {
    type: "strings",
    default: [],
    per_host: false,
    describe:
      "Modules that run in worker threads of their own: an endless loop, a leak or a process.exit ends only that worker, which is started again.",
  },
  isolated_heap: {
    type: "size",
    default: "256MiB",
    min: 16 * 1024 * 1024,
    per_host: false,
    describe: "Memory that the worker of an isolated module may use, on its heap and as much again beside it.",
  },
  isolated_timeout: {
    type: "period",
    default: 10,
    min: 0.2,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    describe: "A worker of an isolated module that gives no sign of life for so long is ended, and started again.",
  },
  quarantine_failures: {
    type: "integer",
    default: 20,
    min: 0,
    per_host: false,
    describe:
      "A module that fails so often within quarantine_window is taken out, and its apps answer 503 until it is tried again: timers, hooks, event handlers and promises that nobody waits for. 0: nothing is taken out.",
  },
  quarantine_failed_requests: {
    type: "integer",
    default: 1000,
    min: 0,
    per_host: false,
    describe:
      "So many requests of a module that end in an unexpected error within quarantine_window, at least half of all its requests, take it out as well. 0: requests do not count.",
  },
  quarantine_window: {
    type: "period",
    default: 60,
    min: 0.1,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    describe: "The time within which failures of a module are counted.",
  },
  quarantine_pause: {
    type: "period",
    default: 5,
    min: 0.05,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    describe: "How long a module stays in quarantine the first time; each time that follows takes twice as long.",
  },
  quarantine_max_pause: {
    type: "period",
    default: 600,
    min: 0.05,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    describe: "The longest time that a module stays in quarantine before it is tried again.",
  },
  quarantine_loop_share: {
    type: "number",
    default: 0.5,
    min: 0,
    max: 1,
    per_host: false,
    describe:
      "A module that holds the event loop for more than this share of 10 seconds, in pieces of more than 50 ms each, is taken out. 0: it is not.",
  },
  quarantine_hog_time: {
    type: "period",
    default: 3,
    max: 10,
    unit: "seconds",
    per_host: false,
    describe:
      "A module that holds the event loop for three quarters of so long, in at least three pieces of more than 50 ms each, is taken out without waiting for those 10 seconds. 0: only quarantine_loop_share counts.",
  },
  quarantine_exempt: {
    type: "strings",
    default: ["http", "http_guard", "node", "http_api"],
    per_host: false,
    describe:
      "Modules that are never taken out, whatever they do, as is what they depend on: those without which nothing is served.",
  },
  stop_timeout: {
    type: "period",
    default: 15,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    applies: "live",
    describe: "How long the server may take to finish its requests when it is stopped.",
  },
  stop_delay: {
    type: "period",
    default: 0,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    applies: "live",
    describe:
      "How long a server that is to stop still takes connections, while `/health/ready` answers 503: what balancers need to send their requests elsewhere. stop_timeout begins afterwards.",
  },
  config_watch: {
    type: "boolean",
    default: false,
    per_host: false,
    applies: "live",
    describe:
      "Watch the config file, and apply what changes in it while the server runs, as `modhost reload` does. A file that is wrong changes nothing.",
  },
} as const satisfies OptionDeclarations;
