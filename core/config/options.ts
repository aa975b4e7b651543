import type { OptionDeclarations } from "../types.ts";

/**
 * The options of the host itself. Modules declare their own; an option exists once, and its parsing, its checks, the
 * JSON Schema, the commented sample and the reference page come from the declaration.
 */
export const coreOptions = {
  modules_enabled: {
    type: "strings",
    default: ["http", "http_errors", "http_files", "http_dir_listing", "http_log", "http_health", "http_api"],
    describe: "Modules to load, by name, path or npm package; an entry of hosts adds its own to this list.",
  },
  modules_disabled: {
    type: "strings",
    default: [],
    describe: "Modules that are never loaded, not even because another one depends on them.",
  },
  plugin_paths: {
    type: "strings",
    default: [],
    per_host: false,
    must_exist: true,
    example: ["./modules"],
    describe: "Folders searched for modules, in this order and before the bundled ones; relative to the config file.",
  },
  plugin_autoload: {
    type: "boolean",
    default: false,
    per_host: false,
    describe: "Load every module found in plugin_paths, named in modules_enabled or not.",
  },
  data_path: {
    type: "path",
    default: "./data",
    per_host: false,
    describe: "Folder in which the server and its modules keep their data; relative to the config file.",
  },
  hosts: {
    type: "object",
    per_host: false,
    example: { "www.example.org": { modules_disabled: ["http_dir_listing"] } },
    describe: "Virtual hosts: host name to options of that host. Without it, any host name is served alike.",
  },
  certificates: {
    type: "object",
    per_host: false,
    example: { "www.example.org": { certificate: "./certs/www.pem", key: "./certs/www.key" } },
    entries: {
      certificate: { type: "path", describe: "PEM file of the certificate, followed by its chain." },
      key: { type: "path", describe: "PEM file of the private key." },
    },
    describe:
      'TLS certificates by host name, "*.example.org" or "*" for the rest; other names get a self-signed certificate.',
  },
  log_level: {
    type: "enum",
    values: ["debug", "info", "warn", "error"],
    default: "info",
    per_host: false,
    describe: "Least severe messages that are logged.",
  },
  log_format: {
    type: "enum",
    values: ["auto", "json", "pretty"],
    default: "auto",
    per_host: false,
    describe: "Form of the log; auto is pretty on a terminal and JSON lines elsewhere.",
  },
  load_timeout: {
    type: "period",
    default: 30,
    min: 0.1,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    describe: "How long a module's own code may take to load; one that takes longer has failed, and the others go on.",
  },
  unload_grace: {
    type: "period",
    default: 10,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    describe: "How long a module that is unloaded or replaced may take to finish its requests.",
  },
  stop_timeout: {
    type: "period",
    default: 15,
    max: 86_400,
    unit: "seconds",
    per_host: false,
    describe: "How long the server may take to finish its requests when it stops.",
  },
} as const satisfies OptionDeclarations;
