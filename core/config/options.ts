import { bundled } from "../../config/bundled.ts";
import { modulesOption } from "../permissions/index.ts";
import type { OptionDeclarations } from "../types.ts";

/**
 * The options of the host itself. Modules declare their own. Each option is declared once; its
 * parsing, its checks, the JSON Schema, the commented sample and the reference page are derived
 * from the declaration.
 */
export const coreOptions = {
  modules_enabled: {
    type: "strings",
    default: bundled.enabled,
    applies: "live",
    describe: "Modules to load, by name, path or npm package. An entry of hosts can add further modules for that host.",
  },
  modules_disabled: {
    type: "strings",
    protects: true,
    default: [],
    applies: "live",
    describe: "Modules that are never loaded, even if another module depends on them.",
  },
  modules: modulesOption,
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
    protects: true,
    per_host: false,
    example: { "www.example.org": { modules_disabled: [bundled.folderLister] } },
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
      "Host names for which the server orders certificates by ACME and renews them before they expire. A certificate in `certificates` takes precedence.",
  },
  acme_agree: {
    type: "boolean",
    default: false,
    per_host: false,
    applies: "live",
    describe:
      "Whether you accept the terms of the authority in `acme_directory`. Without that, no certificate is ordered.",
  },
  acme_directory: {
    type: "url",
    default: "https://acme-v02.api.letsencrypt.org/directory",
    per_host: false,
    applies: "live",
    describe: "URL of the ACME directory of the authority that issues the certificates for `acme_hosts`.",
  },
  acme_email: {
    type: "string",
    per_host: false,
    example: "admin@example.org",
    applies: "live",
    describe: "Email address at which the authority can contact you.",
  },
  acme_challenge: {
    type: "enum",
    values: ["http-01", "tls-alpn-01"],
    default: "http-01",
    per_host: false,
    applies: "live",
    describe:
      "How the authority verifies that a name belongs to this server: with a request to port 80 (http-01) or port 443 (tls-alpn-01).",
  },
  acme_ca_file: {
    type: "path",
    per_host: false,
    must_exist: true,
    applies: "live",
    describe: "PEM file with the CA certificates for connections to the authority, if you run your own.",
  },
  acme_eab_id: {
    type: "string",
    per_host: false,
    applies: "live",
    describe:
      "Key identifier of your account with the authority, if it requires an existing account (external account binding).",
  },
  acme_eab_key: {
    type: "string",
    per_host: false,
    secret: true,
    applies: "live",
    describe: "The key that belongs to `acme_eab_id`, in base64url.",
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
      "File for the log, as JSON lines unless log_format says otherwise. If not set, it goes to the standard error. `modhost reopen` and SIGUSR2 reopen it after it was moved away.",
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
      "Number of processes with which modhost run serves HTTP; 0: one per processor. Shared modules run only in the first one.",
  },
  worker_timeout: {
    type: "period",
    default: 30,
    min: 0,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    applies: "start",
    describe: "Time after which a process of `workers` that does not respond is killed and replaced; 0: never.",
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
      "When the event loop is blocked for this long, modhost run reports on standard error which module blocks it. 0: never, as in a program that runs a host of its own.",
  },
  loop_watchdog_exit: {
    type: "boolean",
    default: false,
    per_host: false,
    applies: "start",
    describe: "Kill the process when loop_watchdog reports it, so that the supervisor restarts it.",
  },
  modules_isolated: {
    type: "strings",
    default: [],
    per_host: false,
    describe:
      "Modules that run in worker threads of their own: an endless loop, a leak or a process.exit ends only that worker, which is restarted.",
  },
  isolated_heap: {
    type: "size",
    default: "256MiB",
    min: 16 * 1024 * 1024,
    per_host: false,
    describe: "Maximum memory of an isolated module's worker: this much on its heap, and as much outside of it.",
  },
  isolated_timeout: {
    type: "period",
    default: 10,
    min: 0.2,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    describe: "A worker of an isolated module that does not respond for this long is killed and restarted.",
  },
  quarantine_failures: {
    type: "integer",
    default: 20,
    min: 0,
    per_host: false,
    describe:
      "Number of failures within quarantine_window after which a module is quarantined: its apps respond with 503 until it is tried again. Failures of timers, hooks, event handlers and unhandled promises count. 0: never.",
  },
  quarantine_failed_requests: {
    type: "integer",
    default: 1000,
    min: 0,
    per_host: false,
    describe:
      "Number of requests that fail with an unexpected error within quarantine_window after which a module is quarantined, if they are at least half of its requests. 0: requests do not count.",
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
    describe: "How long a module stays in quarantine the first time; each later time takes twice as long.",
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
      "A module that blocks the event loop for more than this share of 10 seconds, in pieces of more than 50 ms each, is quarantined. 0: never.",
  },
  quarantine_hog_time: {
    type: "period",
    default: 3,
    max: 10,
    unit: "seconds",
    per_host: false,
    describe:
      "A module that blocks the event loop for three quarters of this time, in at least three pieces of more than 50 ms each, is quarantined before the 10 seconds are over. 0: only quarantine_loop_share counts.",
  },
  quarantine_exempt: {
    type: "strings",
    default: bundled.essential,
    per_host: false,
    describe:
      "Modules that are never quarantined, and neither are the modules they depend on: nothing would be served without them.",
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
      "How long a stopping server still accepts connections while `/health/ready` responds with 503, so that load balancers can send requests elsewhere. stop_timeout starts afterwards.",
  },
  config_watch: {
    type: "boolean",
    default: false,
    per_host: false,
    applies: "live",
    describe:
      "Watch the config file and apply its changes while the server runs, as `modhost reload` does. A file with errors changes nothing.",
  },
} as const satisfies OptionDeclarations;
