/** What `modhost check` tries of values that have the right form: whether paths, apps and ports are there. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type Config, nearest } from "../config/index.ts";
import type { HttpModule } from "../http/index.ts";
import { Ports } from "../ports/ports.ts";
import type { ConfigPlan, OptionDeclaration } from "../types.ts";
import { reasonOf } from "../util/errors.ts";

/** One sentence for each value that will not do what it is meant to. Ports are not tried. */
export async function valueWarnings(config: Config, http: HttpModule | undefined): Promise<string[]> {
  return [...(await pathWarnings(config)), ...appWarnings(config, http)];
}

interface SetOption {
  /** As in the config file: `hosts.www.example.org.http_files_dir`. */
  readonly path: string;
  readonly declaration: OptionDeclaration;
  readonly value: unknown;
}

/** The options that are set, the server's and those of each host, as they are read. */
function* setOptions(config: Config): Generator<SetOption> {
  for (const [name, declaration] of config.declarations()) {
    const whole = config.raw(name);
    if (whole !== undefined) yield { path: name, declaration, value: config.value(name) };
    for (const host of config.hosts()) {
      if (config.raw(name, host) === whole) continue;
      yield { path: `hosts.${host}.${name}`, declaration, value: config.value(name, host) };
    }
  }
}

/** None for the embedded default, whose folders need not be there. */
async function pathWarnings(config: Config): Promise<string[]> {
  if (config.file === undefined) return [];
  const warnings: string[] = [];
  for (const { path, declaration, value } of setOptions(config)) {
    for (const place of pathsIn(declaration, value, config.directory)) {
      const fault = await pathFault(place, declaration);
      if (fault !== undefined) warnings.push(`${path}: ${fault}`);
    }
  }
  return warnings;
}

function pathsIn({ type, must_exist }: OptionDeclaration, value: unknown, directory: string): string[] {
  if (type === "path") return [String(value)];
  const isList = type === "strings" && must_exist === true;
  return isList ? (value as string[]).map((path) => resolve(directory, path)) : [];
}

/** Undefined for a path that can be read, or made where nothing is there. */
async function pathFault(path: string, { must_exist }: OptionDeclaration): Promise<string | undefined> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error.code);
  if (typeof found === "object") {
    return (await allows(path, constants.R_OK)) ? undefined : `there is no permission to read ${path}`;
  }
  if (found !== "ENOENT") return found === "ENOTDIR" ? `a file is in the way of ${path}` : `${path} cannot be read`;
  if (must_exist === true) return `there is no ${path}`;
  let above = dirname(path);
  while (above !== dirname(above) && !(await allows(above, constants.F_OK))) above = dirname(above);
  if (!(await stat(above)).isDirectory()) return `${path} cannot be made: ${above} is no folder`;
  return (await allows(above, constants.W_OK))
    ? undefined
    : `${path} cannot be made: no permission to write in ${above}`;
}

const allows = (path: string, mode: number): Promise<boolean> =>
  access(path, mode).then(
    () => true,
    () => false,
  );

/** Names of apps that nobody provides, and apps of one name of which the second is hidden behind the first. */
function appWarnings(config: Config, http: HttpModule | undefined): string[] {
  if (http === undefined) return [];
  const routes = http.routes();
  const apps = new Set(routes.map(({ app }) => app));
  const unknown = [...setOptions(config)].flatMap(({ path, declaration, value }) => {
    if (declaration.keys !== "apps") return [];
    const names = Object.keys(value as object).filter((name) => name !== "*" && !apps.has(name));
    return names.map((name) => `${path}.${name}: ${noApp(name, apps)}`);
  });
  // What stands before an app that is not there stands before nothing: the app that was meant goes without it.
  const idle = http
    .middleware()
    .filter(({ module }) => module === "http")
    .flatMap(({ name, apps: before = [] }) =>
      before.filter((app) => !apps.has(app)).map((app) => `http_middleware, ${name}: ${noApp(app, apps)}`),
    );
  const byName = Map.groupBy(routes, ({ host, app }) => `${app}${host === "*" ? "" : ` on ${host}`}`);
  const taken = [...byName].flatMap(([name, own]) => {
    const modules = [...new Set(own.map(({ module }) => module))];
    if (modules.length < 2) return [];
    return [`The modules ${modules.join(" and ")} both provide an app ${name}: set the name of one in its provider`];
  });
  return [...unknown, ...idle, ...taken];
}

function noApp(name: string, apps: ReadonlySet<string>): string {
  const near = nearest(name, apps);
  return `no app is named ${name}${near === undefined ? "" : `: did you mean ${near}?`}`;
}

/** Of a server that runs, only the ports that it would open are tried: the others are its own. */
export async function portWarnings(config: Config, plan: ConfigPlan | undefined): Promise<string[]> {
  const opened = plan?.ports.filter(({ action }) => action === "open").map(({ port }) => port);
  const warnings: string[] = [];
  for await (const refused of new Ports(config).refused()) {
    if (opened === undefined) warnings.push(`${reasonOf(refused)} (or does this server run?)`);
    else if (opened.includes(Number(refused.details.port))) warnings.push(reasonOf(refused));
  }
  return warnings;
}
