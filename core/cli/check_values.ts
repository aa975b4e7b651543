/** Checks option values of the right form: whether paths, apps and ports exist or can be used. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type Config, nearest } from "../config/index.ts";
import type { HttpModule } from "../http/index.ts";
import { Ports } from "../ports/ports.ts";
import type { ConfigPlan, OptionDeclaration, PortStep, ServerStatus } from "../types.ts";
import { reasonOf } from "../util/errors.ts";

/**
 * Returns one sentence for each value that will not have the intended effect. Ports are not
 * checked.
 */
export async function valueWarnings(config: Config, http: HttpModule | undefined): Promise<string[]> {
  return [...(await pathWarnings(config)), ...appWarnings(config, http)];
}

interface SetOption {
  /** The name as in the config file: `hosts.www.example.org.notes_folder`. */
  readonly path: string;
  readonly declaration: OptionDeclaration;
  readonly value: unknown;
}

/**
 * Yields the options that are set, of the server and of each host, with the values that modules
 * read.
 */
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

/**
 * Finds reasons why a start could not open its log file. A check loads modules, but opens no log.
 */
export async function fileProblems(config: Config): Promise<string[]> {
  const path = config.value("log_file");
  if (typeof path !== "string") return [];
  const found = await stat(path).catch(() => undefined);
  // A pipe or a device can be a log file, too.
  if (found?.isDirectory() === true) return [`log_file: ${path} is a folder`];
  if (found === undefined) {
    const fault = await pathFault(path, {});
    return fault === undefined ? [] : [`log_file: ${fault}`];
  }
  return (await allows(path, constants.W_OK)) ? [] : [`log_file: there is no permission to write ${path}`];
}

/** Returns no warnings for the embedded default, whose folders need not exist. */
async function pathWarnings(config: Config): Promise<string[]> {
  if (config.file === undefined) return [];
  const warnings: string[] = [];
  for (const { path, declaration, value } of setOptions(config)) {
    for (const file of pathsIn(declaration, value, config.directory)) {
      const fault = await pathFault(file, declaration);
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

/** Returns undefined for a path that can be read, or created if nothing exists there. */
async function pathFault(
  path: string,
  { must_exist }: Pick<OptionDeclaration, "must_exist">,
): Promise<string | undefined> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error.code);
  if (typeof found === "object") {
    return (await allows(path, constants.R_OK)) ? undefined : `there is no permission to read ${path}`;
  }
  if (found !== "ENOENT") return found === "ENOTDIR" ? `a file is in the way of ${path}` : `${path} cannot be read`;
  if (must_exist === true) return `there is no ${path}`;
  let above = dirname(path);
  while (above !== dirname(above) && !(await allows(above, constants.F_OK))) above = dirname(above);
  if (!(await stat(above)).isDirectory()) return `${path} cannot be created: ${above} is not a folder`;
  return (await allows(above, constants.W_OK))
    ? undefined
    : `${path} cannot be created: no permission to write in ${above}`;
}

const allows = (path: string, mode: number): Promise<boolean> =>
  access(path, mode).then(
    () => true,
    () => false,
  );

/**
 * Returns warnings about names of apps that no module provides, and about apps of the same name, of
 * which the second one is hidden.
 */
function appWarnings(config: Config, http: HttpModule | undefined): string[] {
  if (http === undefined) return [];
  const routes = http.routes();
  const apps = new Set(routes.map(({ app }) => app));
  const unknown = [...setOptions(config)].flatMap(({ path, declaration, value }) => {
    if (declaration.keys !== "apps") return [];
    const names = Object.keys(value as object).filter((name) => name !== "*" && !apps.has(name));
    return names.map((name) => `${path}.${name}: ${noApp(name, apps)}`);
  });
  // Middleware for an app that does not exist never runs. The app that was meant then runs without
  // it.
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

/**
 * Finds reasons why a start could not open its ports. A port counts as free if the running server
 * has it, even on another address that the change closes, such as 127.0.0.1 for "*".
 */
export async function portFaults(
  config: Config,
  plan: ConfigPlan | undefined,
  running: ServerStatus | undefined,
): Promise<{ readonly problems: string[]; readonly warnings: string[] }> {
  const portsTo = (action: PortStep["action"]) =>
    new Set(plan?.ports.filter((step) => step.action === action).map(({ port }) => port));
  const opened = portsTo("open");
  const closed = portsTo("close");
  const own = new Set(running?.addresses.map(({ port }) => port));
  const problems: string[] = [];
  const warnings: string[] = [];
  for await (const { error: refused, isOptional } of new Ports(config).refused()) {
    const { code, details } = refused;
    const port = Number(details.port);
    const reason = reasonOf(refused);
    // PORT_UNAVAILABLE means that the port cannot be opened even though no other program uses it.
    if (code === "PORT_UNAVAILABLE") (isOptional ? warnings : problems).push(reason);
    else if (running === undefined) warnings.push(`${reason} (perhaps because this server runs)`);
    else if (plan === undefined ? !own.has(port) : opened.has(port) && !closed.has(port)) warnings.push(reason);
  }
  return { problems, warnings };
}
