/** Checks of the program, the machine and the configuration. */

import { X509Certificate } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ModuleSettings } from "../../permissions/index.ts";
import { Ports } from "../../ports/ports.ts";
import { reasonOf } from "../../util/errors.ts";
import { packageManifest } from "../../util/package.ts";
import { counted } from "../../util/text.ts";
import { type Check, type Finding, type Installation, openToOthers, problem, unfoundServer, warning } from "./check.ts";
import { existing, isWritable } from "./data_checks.ts";

const DAY_MS = 86_400_000;
const SOON_DAYS = 14;
const MIN_OPEN_FILES = 4096;
const MIN_WATCHES = 8192;
const MIN_INSTANCES = 128;

export const systemChecks: readonly Check[] = [
  {
    name: "Node.js",
    help: "The version of Node.js is supported",
    run({ system }) {
      const wanted = packageManifest().engines.node ?? "";
      const [least = [0, 0], now] = [wanted, system.node].map((text) =>
        /(\d+)\.(\d+)/.exec(text)?.slice(1).map(Number),
      );
      const [major = 0, minor = 0] = now ?? [];
      const [leastMajor = 0, leastMinor = 0] = least;
      if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return [];
      return [
        problem(
          `This is Node.js ${system.node}, but ${wanted} is needed`,
          `install Node.js ${leastMajor} from https://nodejs.org`,
        ),
      ];
    },
  },
  {
    name: "configuration",
    help: "The configuration is valid, and every module loads with it",
    run({ report }) {
      const file = report.config ?? "the configuration";
      return [
        ...report.problems.map((text) => problem(text, `correct ${file}; then run modhost check`)),
        ...report.warnings.map((text) => warning(text, `correct ${file}, unless that is intended`)),
      ];
    },
  },
  {
    name: "ports",
    help: "The configured ports can be opened, unless the running server has them",
    run: portFindings,
  },
  {
    name: "server",
    help: "The running server has no failed module, and reports no warnings",
    run: ({ running }) =>
      (running?.warnings ?? []).map((text) => warning(text, "see modhost status, and the log of the server")),
  },
  {
    name: "certificates",
    help: "No certificate has expired or will expire soon",
    run: (installation) =>
      installation.running === undefined ? storedCertificates(installation) : servedCertificates(installation),
  },
  {
    name: "keys",
    help: "Only the server can read the private keys of certificates",
    run({ config }) {
      const certificates = (config?.value("certificates") ?? {}) as Record<string, { readonly key?: unknown }>;
      // A group such as ssl-cert may be allowed to read it.
      return Object.values(certificates).flatMap(({ key }) => openToOthers(key, "the private key "));
    },
  },
  {
    name: "logs",
    help: "Log files are writable",
    run({ config }) {
      if (config === undefined) return [];
      const options = [...config.declarations()].filter(
        ([name, { type }]) => type === "path" && /_file$/.test(name) && /log/.test(name),
      );
      return options.flatMap(([name]) => {
        const path = config.value(name);
        if (typeof path !== "string" || isWritable(existing(path))) return [];
        return [
          problem(
            `${name}: ${path} is not writable`,
            `chown it, or ${dirname(path)}, to the user that runs the server`,
          ),
        ];
      });
    },
  },
  {
    name: "open files",
    help: "The process may open enough files and connections",
    run({ running, system }) {
      const limits = system.read(`/proc/${running?.pid ?? "self"}/limits`);
      const [, limit] = /^Max open files +\d+ +(\d+)/m.exec(limits ?? "") ?? [];
      if (limit === undefined || Number(limit) >= MIN_OPEN_FILES) return [];
      return [
        warning(
          `${limit} files and connections may be open at a time`,
          "LimitNOFILE=65536 in the unit, or ulimit -n 65536",
        ),
      ];
    },
  },
  {
    name: "sandbox",
    help: "Every module that the configuration sandboxes can be sandboxed here; the layers are listed at the end",
    run: sandboxFindings,
  },
  {
    name: "file watches",
    help: "Files can be watched: run --watch and config_watch need it",
    run({ system }) {
      const low = (name: string, least: number) => {
        const value = Number(system.read(`/proc/sys/fs/inotify/${name}`) ?? Number.POSITIVE_INFINITY);
        if (value >= least) return [];
        return [warning(`fs.inotify.${name} is ${value}`, `sysctl fs.inotify.${name}=${least * 16}`)];
      };
      return [...low("max_user_watches", MIN_WATCHES), ...low("max_user_instances", MIN_INSTANCES)];
    },
  },
];

function sandboxFindings({ config, layers }: Installation): Finding[] {
  const modules = Object.entries((config?.value("modules") ?? {}) as Readonly<Record<string, ModuleSettings>>);
  const sandboxed = modules.filter(([, { run }]) => run === "sandboxed");
  return layers.flatMap(({ name, works, isRequired, detail, remedy = "" }) => {
    if (works) return [];
    const requiring = sandboxed.filter(
      ([, { namespaces }]) => isRequired || (name === "namespaces" && namespaces === "required"),
    );
    if (requiring.length === 0) return [];
    const names = requiring.map(([module]) => module).join(", ");
    return [problem(`${detail} It is required for ${names}.`, remedy)];
  });
}

async function portFindings({ config, running }: Installation): Promise<Finding[]> {
  if (config === undefined || running !== undefined) return [];
  const findings: Finding[] = [];
  for await (const { error, isOptional } of new Ports(config).refused()) {
    const isTaken = error.code === "PORT_TAKEN";
    const remedy = isTaken
      ? `stop the program that uses it (ss -ltnp shows which), or choose another port${unfoundServer(config)}`
      : "use a port above 1023, or a socket of systemd";
    findings.push((isOptional ? warning : problem)(reasonOf(error), remedy));
  }
  return findings;
}

function servedCertificates({ running, system }: Installation): Finding[] {
  return (running?.certificates ?? []).flatMap(({ name, source, expires }) => {
    if (expires === undefined)
      return [warning(`The certificate of ${name} is not issued yet`, "see the log of the server for why")];
    // The server replaces its own certificates before they expire.
    return source === "self-signed" ? [] : expiry(name, Date.parse(expires), system.now());
  });
}

/** Checks the certificates that the configuration names, and those that an authority has issued. */
function storedCertificates({ config, data, system }: Installation): Finding[] {
  const named = Object.entries(
    (config?.value("certificates") ?? {}) as Record<string, { readonly certificate?: unknown }>,
  );
  const acme = join(data, "certs", "acme");
  const issued = existsSync(acme) ? readdirSync(acme, { recursive: true, encoding: "utf8" }) : [];
  const files = [
    ...named.map(([name, { certificate }]) => [name, String(certificate)] as const),
    ...issued.filter((name) => /\.(?:pem|crt)$/.test(name)).map((name) => [name, join(acme, name)] as const),
  ];
  return files.flatMap(([name, file]) => {
    try {
      return expiry(name, Date.parse(new X509Certificate(readFileSync(file)).validTo), system.now());
    } catch {
      return []; // The check of the configuration reports certificates that cannot be read.
    }
  });
}

function expiry(name: string, expires: number, now: number): Finding[] {
  const days = Math.floor((expires - now) / DAY_MS);
  const until = new Date(expires).toISOString().slice(0, 10);
  const remedy = "renew it: the server reads changed files by itself";
  if (days < 0) return [problem(`The certificate of ${name} has expired on ${until}`, remedy)];
  return days < SOON_DAYS
    ? [warning(`The certificate of ${name} expires in ${counted(days, "day")}, on ${until}`, remedy)]
    : [];
}
