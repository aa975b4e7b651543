/**
 * The option `http_default_headers`: headers that are added to responses that lack them, for all
 * apps or for single apps.
 */
import { invalidOption } from "../../core/index.ts";
import type { DefaultHeaders, Module } from "../../core/types.ts";

const option = "http_default_headers";

const names: readonly (keyof DefaultHeaders)[] = ["content_type", "x_content_type_options"];

/** An app, with the default headers that it declares itself. */
interface App {
  readonly name: string;
  readonly own: DefaultHeaders | undefined;
}

/**
 * Returns the default headers of an app. The entry of the option for that app counts first, then
 * the app's own declaration, then the entry for all apps. Without an app, the headers are for
 * responses that no app makes. An empty text removes a header. @throws {ModhostError}
 * OPTION_INVALID
 */
export function defaultHeadersOf(module: Module, app?: App): DefaultHeaders | undefined {
  const given = module.get_option_object(option) ?? {};
  const forAll = Object.fromEntries(Object.entries(given).filter(([, value]) => !isTable(value)));
  const forApps = Object.fromEntries(Object.entries(given).filter(([, value]) => isTable(value)));
  const layers = [checked(forAll, option)];
  if (app?.own !== undefined) layers.push(checked({ ...app.own }, `default_headers of the app ${app.name}`));
  for (const [name, table] of Object.entries(forApps)) {
    const headers = checked(table as Record<string, unknown>, `${option}.${name}`);
    if (name === app?.name) layers.push(headers);
  }
  const merged = Object.entries(Object.assign({}, ...layers) as Record<string, string>);
  const said = merged.filter(([, value]) => value !== "");
  return said.length === 0 ? undefined : Object.fromEntries(said);
}

/** @throws {ModhostError} OPTION_INVALID */
function checked(table: Readonly<Record<string, unknown>>, optionPath: string): Record<string, string> {
  const set = Object.entries(table).filter(([, value]) => value !== undefined && value !== null);
  return Object.fromEntries(
    set.map(([key, value]) => {
      const name = names.find((known) => known === key.toLowerCase().replaceAll("-", "_"));
      if (name === undefined)
        throw invalidOption(
          `${optionPath}.${key}`,
          value,
          `only ${names.join(" and ")} can be given, or an app's name with these`,
        );
      if (typeof value !== "string" || !/^[\t\x20-\x7e]*$/.test(value))
        throw invalidOption(`${optionPath}.${key}`, value, "it must be text of one line");
      return [name, value];
    }),
  );
}

function isTable(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
